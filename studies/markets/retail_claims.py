"""Claims on Online Retail, each checked against the stored numbers."""

from collections.abc import Iterator, Mapping
from statistics import fmean

from common.text import count
from studies.harness.claim import Comparison, verdict
from studies.harness.row import Row, in_order, mean
from studies.markets.retail import BASELINES, EFFORT, MAIN, MARKETS, UNPOOLED

NAMES = {"mrr20": "MRR@20", "ndcg20": "NDCG@20"}

LEVEL = 1.0
"""Points by which the default may be below the best baseline of a market."""

STEPS = (
    ("fedavg", "local"),
    ("pfgnn", "local"),
    ("pfgnn", "fedavg"),
    ("pfgnn-plus", "pfgnn"),
    ("pfgnn-centroid", "pfgnn"),
    *((f"{first}{EFFORT}", f"{second}{EFFORT}") for first, second in (("pfgnn", "fedavg"), ("pfgnn-plus", "pfgnn"))),
    *((f"{name}{EFFORT}", "local") for name in ("pfgnn", "pfgnn-plus")),
)
"""Rows that should be above others, by the paper."""

Rows = Mapping[str, Row]


def values_of(row: Row, metric: str, market: str) -> dict[int, float]:
    """Return seed -> value in %, of a market or, for `mean`, the mean of all."""
    names = MARKETS if market == "mean" else (market,)
    each = [row.values(metric, name) for name in names]
    shared = set(each[0]).intersection(*each)
    return {seed: 100 * fmean(values[seed] for values in each) for seed in sorted(shared)}


def compare(first: Row, second: Row, metric: str, market: str = "mean", prefix: str = "") -> Comparison | None:
    """Compare two rows, or one with itself ranked otherwise; None without a shared seed."""
    ours, others = values_of(first, metric, market), values_of(second, f"{prefix}{metric}", market)
    seeds = sorted(ours.keys() & others.keys())
    pair = tuple(ours[s] for s in seeds), tuple(others[s] for s in seeds)
    return Comparison(*pair, higher_is_better=True) if seeds else None


def of_default(rows: Rows) -> Iterator[str]:
    """Check the default against the best baselines."""
    baselines = in_order(rows, BASELINES)
    if "ridge" not in rows or not baselines:
        return
    for metric in MAIN:
        below = []
        for market in MARKETS:
            best = max(baselines.values(), key=lambda row: mean(values_of(row, metric, market).values()))
            pair = compare(rows["ridge"], best, metric, market)
            if pair and pair.mean < -LEVEL:
                below.append(f"{market} ({pair.text(1)}, {_plain(best)})")
        best = max(baselines.values(), key=lambda row: mean(values_of(row, metric, "mean").values()))
        pair = compare(rows["ridge"], best, metric)
        if pair:
            held = verdict(not below) + (f" in {'; '.join(below)}" if below else "")
            yield f"Default at least the best baseline − {LEVEL:g} in every market, {NAMES[metric]}: {held}."
            yield f"Default above it in the mean, {NAMES[metric]}: {pair.text(1)} ({_plain(best)}), {verdict(pair.mean > 0)}."


def of_networks(rows: Rows) -> Iterator[str]:
    """Check the order of the networks that the paper claims."""
    for first, second in (pair for pair in STEPS if set(pair) <= set(rows)):
        yield from (_step(rows[first], rows[second], metric) for metric in MAIN)


def of_ranking(rows: Rows) -> Iterator[str]:
    """Compare a ranking by Z with one by Z̃ = P⁻¹(ξ), of the same trainings."""
    for row in in_order(rows, ("pfgnn-plus", "pfgnn-centroid")).values():
        pairs = {metric: compare(row, row, metric, prefix=UNPOOLED) for metric in MAIN}
        found = [f"{NAMES[metric]} {pair.text(1)}" for metric, pair in pairs.items() if pair]
        if found:
            yield f"{_plain(row)}: Z against Z̃ in the ranking: {'; '.join(found)}."


def _step(first: Row, second: Row, metric: str) -> str:
    pair = compare(first, second, metric)
    if pair is None:
        return f"{_plain(first)} and {_plain(second)} share no seed."
    markets = [compare(first, second, metric, market) for market in MARKETS]
    won = sum(one.mean > 0 for one in markets if one)
    return (
        f"{_plain(first)} above {_plain(second)}, {NAMES[metric]}: {pair.text(1)}, {_in_all_seeds(pair)};"
        f" in {won} of {count(len(MARKETS), 'market')}."
    )


def _in_all_seeds(pair: Comparison) -> str:
    """Return the verdict if all seeds share a sign, else `open`."""
    return verdict(pair.won > 0) if pair.won in (0, pair.seeds) else "open"


def _plain(row: Row) -> str:
    """Return the title without emphasis, kind and remarks."""
    return row.title.replace("*", "").removeprefix("baseline: ").partition(":")[0]
