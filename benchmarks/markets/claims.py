"""What the tables say of the targets, in sentences that their figures write."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from benchmarks.markets.sets import SMALL
from benchmarks.markets.study import Metrics
from benchmarks.markets.table import Row

NETWORKS = ("local", "fedavg", "perfedavg", "pfedme", "pfgnn", "pfgnn-plus", "pfgnn-centroid")

STEPS = (("pfgnn", "fedavg"), ("pfgnn-plus", "pfgnn"), ("pfgnn-centroid", "pfgnn"))
"""Rows that should come out above others: PF-GNN+ ≥ PF-GNN ≥ F-GNN."""

EXPLORED = dict(zip(SMALL, (45, 48, 62, 55, 63), strict=True))
"""MRR@20 of the best local SGC of the exploration."""

NOISE = 1.0
"""Points of MRR, in the mean of five markets and three seeds, that mean nothing."""

GAINS = {"mrr20": 3.5, "ndcg20": 4.5}
"""Of the scorer over degree, where items are new, in points."""

PRIVATE_JP = 33.0
"""NDCG@20 that jp should keep under noise."""


def of_pairs(rows: Mapping[str, Row]) -> Iterator[str]:
    """Whether the networks reach what was hoped for on random pairs; of what was run."""
    found = {key: rows[key] for key in NETWORKS if key in rows}
    if "local" in found:
        yield from (_against_local(row, found["local"], rows["walk"]) for key, row in found.items() if key != "local")
    for key, below in STEPS:
        if key in found and below in found:
            yield _step(found[key], found[below])
    for row in found.values():
        missed = [market for market in SMALL if row.mean("mrr20", market) < EXPLORED[market]]
        short = ", ".join(f"{market} ({row.mean('mrr20', market):.1f} of {EXPLORED[market]})" for market in missed)
        yield f"- {row.title}: the exploration's best local SGC is {f'**missed** in {short}' if short else 'reached'}."


def of_default(protocol: str, rows: Mapping[str, Row]) -> Iterator[str]:
    """Where the default is below popularity or the walk; of what was run."""
    if "default" not in rows:
        return
    lines, lost = {"degree": rows["degree"], "wRA": rows["walk"]}, []
    for market in (*SMALL, "mean"):
        own, best = rows["default"].mean("mrr20", market), max(lines, key=lambda key: lines[key].mean("mrr20", market))
        if own < (most := lines[best].mean("mrr20", market)) - NOISE:
            lost.append(f"{market} ({own:.1f}, {best} {most:.1f})")
    told = f"**loses** to a line in {', '.join(lost)}" if lost else "loses to no line in any small market"
    yield f"- {protocol.partition(':')[0]}: the default {told} (MRR, beyond {NOISE:g} point)."


def of_cold(kind: str, markets: Mapping[str, Sequence[Metrics]]) -> Iterator[str]:
    """Whether a new market's new items gain what was asked for; `kind` of counts, market -> each seed's metrics."""
    gains = {name: {m: _gain(seeds, m) for m in GAINS} for name, seeds in markets.items() if seeds}
    if not gains:
        return
    missed = [
        f"{name} ({gain['mrr20']:+.1f} / {gain['ndcg20']:+.1f})"
        for name, gain in gains.items()
        if any(gain[metric] < least for metric, least in GAINS.items())
    ]
    held = f"**does not hold** in {', '.join(missed)}" if missed else "holds"
    yield f"- New items, counts {kind}: +3.5 MRR and +4.5 NDCG over degree in all {len(gains)} markets: {held}."
    if kind == "noised" and markets.get("jp"):
        kept = 100 * fmean(seed["scorer_ndcg20"] for seed in markets["jp"])
        yield f"- jp's NDCG under noise at least {PRIVATE_JP:g}: {kept:.1f}, {_word(kept >= PRIVATE_JP)}."


def of_joiners(markets: Mapping[str, Sequence[Mapping[str, Metrics]]]) -> Iterator[str]:
    """What late joiners get at each share of their pairs, beside the best line."""
    known = {name: seeds for name, seeds in markets.items() if seeds}
    for share in next(iter(known.values()))[0] if known else ():
        lost = []
        for name, seeds in known.items():
            scorer, degree, walk = (_mean(seeds, share, key) for key in ("scorer", "degree", "walk"))
            if scorer < max(degree, walk) - NOISE:
                lost.append(f"{name} ({scorer:.1f}, {'degree' if degree > walk else 'wRA'} {max(degree, walk):.1f})")
        told = f"**loses** to a line in {', '.join(lost)}" if lost else "loses to no line"
        yield f"- Late joiners with {100 * float(share):.0f} % of their pairs: the scorer {told} (MRR, beyond {NOISE:g} point)."


def _against_local(row: Row, local: Row, walk: Row) -> str:
    gains = {market: row.mean("mrr20", market) - local.mean("mrr20", market) for market in (*SMALL, "mean")}
    told = ", ".join(f"{market} {gain:+.1f}" for market, gain in gains.items())
    word = "gain" if gains["mean"] > NOISE else "**no gain**"
    below = walk.mean("mrr20", "mean") - row.mean("mrr20", "mean")
    return f"- {row.title} against a local GNN, MRR: {told}: {word}. {below:.1f} below wRA."


def _step(row: Row, below: Row) -> str:
    gains = {market: row.mean("mrr20", market) - below.mean("mrr20", market) for market in (*SMALL, "mean")}
    worse = ", ".join(f"{market} {gain:+.1f}" for market, gain in gains.items() if gain < 0) or "nowhere below it"
    word = "level within noise" if abs(gains["mean"]) <= NOISE else _word(gains["mean"] > 0)
    return f"- {row.title} at least {below.title}, mean of the small markets: {gains['mean']:+.1f}, {word}; {worse}."


def _gain(seeds: Sequence[Metrics], metric: str) -> float:
    return 100 * fmean(seed[f"scorer_{metric}"] - seed[f"degree_{metric}"] for seed in seeds)


def _mean(seeds: Sequence[Mapping[str, Metrics]], share: str, key: str) -> float:
    return 100 * fmean(seed[share][f"{key}_mrr20"] for seed in seeds)


def _word(held: bool) -> str:
    return "holds" if held else "**does not hold**"
