"""Results page of the markets study, made from stored results alone."""

from collections.abc import Iterable, Iterator, Mapping

from studies.harness.claim import bullet_list
from studies.harness.results import Results
from studies.harness.row import Row, in_order, mean_sd
from studies.harness.table import Table
from studies.markets import claims, prose, retail_page
from studies.markets.experiments import (
    BASELINES,
    EXPERIMENTS,
    MARKETS,
    PROTOCOLS,
    RATES,
    SEEDS,
    SMALL,
    TITLES,
    XMARKET,
)
from studies.markets.weights import PAIRS, PULL, PULL_OF_SUM, SUM_RATES, SUM_ROUNDS, SUMMARIES, SUMMED, WEIGHTED

ORDER = (*SMALL, "mean", *(name for name in MARKETS if name not in SMALL))
"""Columns: markets, and the mean of the small ones."""

MAIN = ("mrr20", "ndcg20")


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    rows = {protocol: in_order(results.rows_of(XMARKET, protocol), TITLES) for protocol in PROTOCOLS}
    yield _introduction(made_by, rows["pairs"])
    yield from retail_page.sections(results)
    for protocol, measured in rows.items():
        if measured:
            yield from _protocol(protocol, measured)
    yield from _weights(results.rows_of(XMARKET, "pairs"))
    sentences = [
        *(one for protocol, measured in rows.items() for one in claims.of_default(PROTOCOLS[protocol], measured)),
        *claims.of_pairs(rows["pairs"]),
    ]
    yield f"## Targets\n\n{bullet_list(sentences)}"
    yield from _missing_runs(rows)
    yield prose.NOT_RUN


def _introduction(made_by: str, rows: Mapping[str, Row]) -> str:
    """State which rate of the grid each network has."""
    titles: dict[str, list[str]] = {f"{rate:g}": [] for rate in RATES}
    for row in in_order(rows, (one.key for one in EXPERIMENTS if len(one.grid) > 1)).values():
        titles.setdefault(str(row.about.chosen.get("point", "lr ")).removeprefix("lr "), []).append(
            row.title.replace("*", "")
        )
    rates = (
        "; ".join(f"{rate} for {', '.join(found)}" for rate, found in titles.items() if rate and found)
        or "none chosen yet"
    )
    return prose.INTRODUCTION.format(
        made_by=made_by, seeds=SEEDS, grid=", ".join(f"{rate:g}" for rate in RATES), rates=rates
    )


def _protocol(protocol: str, rows: Mapping[str, Row]) -> Iterator[str]:
    yield f"## {PROTOCOLS[protocol]}\n\n{_table(rows.values())}"
    seen = [row for row in rows.values() if row.values("seen_mrr20", SMALL[0])]
    if protocol == "cold" and seen:
        degree = ["*baseline:* degree, same queries", *(_cell(seen[0], market, "degree_seen_") for market in ORDER)]
        cells = [[row.title, *(_cell(row, market, "seen_") for market in ORDER)] for row in seen]
        yield f"{prose.SEEN}\n\n{Table(['', *ORDER], [degree, *cells])}"


def _weights(rows: Mapping[str, Row]) -> Iterator[str]:
    """Return the rows of other weights, after those of the paper's weights of PF-GNN+."""
    measured = in_order(rows, (one.key for one in WEIGHTED))
    if measured:
        yield prose.WEIGHTS
        if any(SUMMED in key for key in measured):
            yield prose.SUMS.format(
                pairs=PAIRS,
                rates=", ".join(map("{:g}".format, SUM_RATES)),
                rounds=SUM_ROUNDS,
                chosen=_chosen_of_sums(rows),
            )
        yield str(_table([*in_order(rows, (PULL, SUMMARIES)).values(), *measured.values()]))


def _chosen_of_sums(rows: Mapping[str, Row]) -> str:
    """Return λ_w, rate and rounds of each row of PF-GNN with weights of a sum."""
    chosen = {
        key.rpartition("-")[2]: row.about.chosen
        for key, row in in_order(rows, (one.key for one in PULL_OF_SUM)).items()
    }
    return "; ".join(f"{w}, {str(at['point']).removeprefix('lr ')}, {at['round']}" for w, at in chosen.items())


def _table(rows: Iterable[Row]) -> Table:
    cells = [[row.title, str(len(row.trials)), *(_cell(row, market) for market in ORDER)] for row in rows]
    return Table(["", "seeds", *ORDER], cells)


def _cell(row: Row, market: str, prefix: str = "") -> str:
    """Return MRR@20 / NDCG@20 of a market, or the mean of the small ones."""
    return _pair(claims.values_of(row, f"{prefix}{metric}", market) for metric in MAIN)


def _pair(values: Iterable[Iterable[float]]) -> str:
    return " / ".join(mean_sd(each, 1, scale=100).replace("± ", "±") for each in values)


def _scores(row: Row, name: str, key: str) -> str:
    return _pair(row.values(f"{key}_{metric}", name).values() for metric in MAIN)


def _missing_runs(rows: Mapping[str, Mapping[str, Row]]) -> Iterator[str]:
    """State which rows have fewer seeds than planned."""
    wanted = [*BASELINES, *(one.key for one in EXPERIMENTS)]
    counts = {
        name: {key: len(found[key].trials) if key in found else 0 for key in wanted} for name, found in rows.items()
    }
    parts = [
        f"{protocol}, {done} of {SEEDS}: {', '.join(missing)}"
        for protocol, found in counts.items()
        for done in range(SEEDS)
        if (missing := [key for key, count in found.items() if count == done])
    ]
    if parts:
        yield f"**Fewer seeds than planned so far** (keys as in `--only`). {'; '.join(parts)}."
