"""Claims of the markets page, each checked against the stored numbers."""

from collections.abc import Iterator, Mapping
from statistics import fmean

from common.text import count
from studies.harness.claim import verdict
from studies.harness.row import Row, in_order, mean
from studies.markets.experiments import SMALL

NETWORKS = ("local", "fedavg", "perfedavg", "pfedme", "pfgnn", "pfgnn-plus", "pfgnn-centroid")

STEPS = (("pfgnn", "fedavg"), ("pfgnn-plus", "pfgnn"), ("pfgnn-centroid", "pfgnn"))
"""Rows that should be above others: PF-GNN+ ≥ PF-GNN ≥ F-GNN."""

EXPLORED = dict(zip(SMALL, (45, 48, 62, 55, 63), strict=True))
"""MRR@20 of the best local SGC of the exploration."""

NOISE = 1.0
"""Points of MRR, in the mean of five markets and three seeds, within which rows are level."""

Rows = Mapping[str, Row]


def by_seed(row: Row, metric: str, market: str) -> dict[int, float]:
    """Return seed -> value, of a market or, for `mean`, the mean of the small markets."""
    if market != "mean":
        return dict(row.values(metric, market))
    each = [row.values(metric, name) for name in SMALL]
    return {seed: fmean(values[seed] for values in each) for seed in each[0]}


def values_of(row: Row, metric: str, market: str) -> list[float]:
    """Return one value a seed."""
    return list(by_seed(row, metric, market).values())


def lead(row: Row, other: Row, market: str) -> float:
    """Return the lead in MRR@20 over another row, in points, mean over the seeds of both."""
    ours, theirs = (by_seed(one, "mrr20", market) for one in (row, other))
    return 100 * fmean(ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys()))


def points(row: Row, market: str, metric: str = "mrr20") -> float:
    """Return the mean over seeds × 100."""
    return 100 * mean(values_of(row, metric, market))


def of_pairs(rows: Rows) -> Iterator[str]:
    """Check the networks on random pairs."""
    measured = in_order(rows, NETWORKS).values()
    if "local" in rows and "walk" in rows:
        yield from (_against_local(row, rows) for row in measured if row is not rows["local"])
    for key, below in STEPS:
        if key in rows and below in rows:
            yield _step(rows[key], rows[below])
    for row in measured:
        missed = [market for market in SMALL if points(row, market) < EXPLORED[market]]
        below_target = ", ".join(f"{market} ({points(row, market):.1f} of {EXPLORED[market]})" for market in missed)
        reached = f"**not reached** in {below_target}" if missed else "reached"
        yield f"{row.title}: MRR@20 of the exploration's best local SGC is {reached}, {count(len(row.trials), 'seed')}."


def of_default(protocol: str, rows: Rows) -> Iterator[str]:
    """Check whether the default is below degree or the walk."""
    if not {"ridge", "degree", "walk"} <= rows.keys():
        return
    baselines = {"degree": rows["degree"], "wRA": rows["walk"]}
    lost = []
    for market in (*SMALL, "mean"):
        found = {title: points(row, market) for title, row in baselines.items()}
        best, reached = max(found, key=lambda title: found[title]), points(rows["ridge"], market)
        if reached < found[best] - NOISE:
            lost.append(f"{market} ({reached:.1f}, {best} {found[best]:.1f})")
    yield f"{protocol.partition(':')[0]}: the default is {_below(lost)}."


def _below(lost: list[str]) -> str:
    where = f"**below** a baseline in {', '.join(lost)}" if lost else "below no baseline in any small market"
    return f"{where} (MRR@20, by more than {NOISE:g} point)"


def _against_local(row: Row, rows: Rows) -> str:
    gains = {market: lead(row, rows["local"], market) for market in (*SMALL, "mean")}
    each = ", ".join(f"{market} {value:+.1f}" for market, value in gains.items())
    word = "gain" if gains["mean"] > NOISE else "**no gain**"
    below = lead(rows["walk"], row, "mean")
    seeds = count(len(row.trials), "seed")
    return f"{row.title} against a local GNN, MRR@20 in points, {seeds}: {each}: {word}; {below:.1f} below wRA."


def _step(row: Row, below: Row) -> str:
    gains = {market: lead(row, below, market) for market in (*SMALL, "mean")}
    worse = ", ".join(f"{market} {value:+.1f}" for market, value in gains.items() if value < 0) or "nowhere below it"
    word = f"level within {NOISE:g} point" if abs(gains["mean"]) <= NOISE else verdict(gains["mean"] > 0)
    return (
        f"{row.title} at least {below.title}, MRR@20, mean of the small markets: {gains['mean']:+.1f}, {word}; {worse}."
    )
