"""The results page as Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from benchmarks.markets.sets import PROTOCOLS, SMALL
from benchmarks.markets.study import Metrics, PerMarket
from benchmarks.studies import markdown

INTRODUCTION = """# Markets: what goes with an item

{made_by}

XMarket Electronics, seven markets (US is not in the copy), ratings only, no texts: items are hashed ids to the networks, so
their tables say nothing of what shared *text* features could do. A pair is two items that at least two users of a market rated.
MRR@20 / NDCG@20 × 100, every item of the market ranked, the query and its training neighbours left out, ties counted as if
broken at random; mean over {seeds} seeds of the split, ± their standard deviation. Between seeds `in` and `jp`, with some 20 to
200 queries, move by ±3 to ±5 points, so smaller differences there mean nothing. *mean*: of the five small markets.
SLIM and EASE take the graph's rows for users, of whom pairs know nothing. FeatMLP, Siamese and SPE see no graph, but triples;
the other networks are SGC of three hops on edges weighted by their users. All: 128 numbers an item, Adam, 200 local steps of
1,024 triples, a rate by held-back pairs of seed 0 from {grid}: {rates}. PF-GNN and PF-GNN+ average plainly
(β = 1, by the same pairs); the pull of ξ, λ_s = .01, is divided by n² where ξ is a sum, and is .001 of means. Per-FedAvg's α
and pFedMe's λ are by held-back pairs of the smallest markets. Counts in clear are of the training pairs; noised ones, bounded
by what a user adds, are of all ratings but those of held-out users: a market takes its own off again, exactly, so nothing of
its test pairs comes back to it, but it sees a tenth more of the others' pairs than the row with clear counts does."""

NOT_RUN = """## Not run

Text features, the other eleven markets and Home & Kitchen, whose data are not here; the networks on `join --adapt`."""


@dataclass
class Row:
    """One line or method under one protocol.

    Args:
        key: Short name.
        title: Name in the table.
        seeds: Seed -> market -> metrics.
    """

    key: str
    title: str
    seeds: dict[int, PerMarket] = field(default_factory=dict)

    def mean(self, metric: str, market: str) -> float:
        """Over the seeds; market `mean`: of the small ones."""
        return fmean(self.values(metric, market))

    def values(self, metric: str, market: str) -> list[float]:
        """Of each seed, × 100."""
        names = SMALL if market == "mean" else (market,)
        return [100 * fmean(seed[name][metric] for name in names) for seed in self.seeds.values()]

    def cell(self, market: str, prefix: str = "") -> str:
        """MRR@20 / NDCG@20."""
        return " / ".join(_spread(self.values(f"{prefix}{m}", market)) for m in ("mrr20", "ndcg20"))


def introduction(made_by: str, seeds: int, grid: Sequence[float], chosen: Mapping[str, float]) -> str:
    """What was done, and which rate of the grid each row, by its title, came to."""
    of = {rate: [title.replace("*", "") for title, found in chosen.items() if found == rate] for rate in grid}
    rates = (
        "; ".join(f"{rate:g} for {', '.join(titles)}" for rate, titles in of.items() if titles) or "none is chosen yet"
    )
    return INTRODUCTION.format(made_by=made_by, seeds=seeds, grid=", ".join(f"{rate:g}" for rate in grid), rates=rates)


def protocol_section(protocol: str, rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """One protocol's table."""
    yield f"## {PROTOCOLS[protocol]}"
    order = [*SMALL, "mean", *(name for name in names if name not in SMALL)]
    yield markdown(["", *order], [[row.title, *(row.cell(market) for market in order)] for row in rows])
    if protocol == "cold":
        known = [row for row in rows if all("seen_mrr20" in seed[SMALL[0]] for seed in row.seeds.values())]
        lines = [Row("degree", "*line:* degree, same queries", _renamed(known[0])), *known] if known else []
        yield "Of these, only the queries that the others' counts know; of noised counts, those are fewer and easier:"
        yield markdown(["", *order], [[row.title, *(row.cell(m, "seen_") for m in order)] for row in lines])


def cold_section(found: Mapping[str, Mapping[str, Sequence[Metrics]]]) -> Iterator[str]:
    """A new market: kind of counts -> market -> each seed's metrics."""
    yield (
        "## A new market: items new here, sold elsewhere; the scorer never fitted on this market\n\n"
        "A federation of the six others is finished; then the market comes. 20 % of its items that others know lose all their "
        "pairs and are the only queries, five draws a seed. Target: the scorer at least +3.5 MRR and +4.5 NDCG over local "
        "degree in each; with user-level DP at ε = 8, jp's NDCG at least 33."
    )
    for kind, title in (
        ("clear", "Counts in clear"),
        ("noised", "Counts noised by every market itself, ε = 8 a user, δ = 1e-5"),
    ):
        markets = found.get(kind, {})
        if not any(markets.values()):
            continue
        rows = [_cold_row(name, seeds) for name, seeds in markets.items() if seeds]
        yield f"### {title}"
        yield markdown(["", "queries", "degree", "wRA", "degree + counts", "scorer", "scorer − degree"], rows)


def late_section(found: Mapping[str, Sequence[Mapping[str, Metrics]]]) -> Iterator[str]:
    """Late joiners: market -> each seed's shares."""
    yield (
        "## Late joiners: a share of the market's training pairs, random pairs asked for\n\n"
        "The finished federation of the six others is not retrained; *alone*: its scorer without the others' counts."
    )
    rows = []
    for name, seeds in found.items():
        for share in seeds[0] if seeds else ():
            told = [seed[share] for seed in seeds]
            cells = [_pair(told, f"{key}_") for key in ("degree", "walk", "alone_scorer", "scorer")]
            rows.append([name, f"{100 * float(share):.0f} %", f"{fmean(t['pairs'] for t in told):.0f}", *cells])
    yield markdown(["", "share", "pairs", "degree", "wRA", "scorer, alone", "scorer"], rows)


def _cold_row(name: str, seeds: Sequence[Metrics]) -> list[str]:
    cells = [_pair(seeds, f"{key}_") for key in ("degree", "walk", "shared", "scorer")]
    gains = [100 * fmean(s[f"scorer_{m}"] - s[f"degree_{m}"] for s in seeds) for m in ("mrr20", "ndcg20")]
    return [name, f"{seeds[0]['queries']:.0f}", *cells, f"{gains[0]:+.1f} / {gains[1]:+.1f}"]


def _pair(told: Sequence[Mapping[str, float]], prefix: str) -> str:
    return " / ".join(_spread([100 * each[f"{prefix}{m}"] for each in told]) for m in ("mrr20", "ndcg20"))


def _renamed(row: Row) -> dict[int, PerMarket]:
    """The degree line as the client measured it on the same queries."""
    kept = {f"seen_{m}": f"degree_seen_{m}" for m in ("mrr20", "ndcg20")}
    return {
        seed: {name: {new: told[old] for new, old in kept.items()} for name, told in each.items()}
        for seed, each in row.seeds.items()
    }


def _spread(values: Sequence[float]) -> str:
    spread = f" ±{stdev(values):.1f}" if len(values) > 1 else ""
    return f"{fmean(values):.1f}{spread}"
