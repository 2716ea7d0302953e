"""What is claimed of the results, each checked against the figures and stated either way."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from benchmarks.ratings.study import Row

TARGETS = {"ml": 0.2045, "ft": 0.2385}
"""RMSE that the default model has to reach at pure ε = 10 (explore-ratings.md §5)."""

BETTER_ON = 0.9
"""Share of the splits on which it has to beat the users' own means."""

TOLERANCE = 0.001
"""RMSE by which a planner may be worse than uniform at the same filter."""


@dataclass(frozen=True)
class Duel:
    """Two rows on the splits both have: RMSE of the first minus the second's."""

    differences: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the splits."""
        return fmean(self.differences)

    @property
    def won(self) -> int:
        """Splits on which the first is better."""
        return sum(difference < 0 for difference in self.differences)

    @property
    def text(self) -> str:
        """`−.0041 ± .0003, 10/10`."""
        many = len(self.differences) > 1
        spread = f" ± {number(stdev(self.differences))}" if many else ""
        return f"{signed(self.mean)}{spread}, {self.won}/{len(self.differences)}"


def duel(first: Row, second: Row) -> Duel | None:
    """Compare where both were measured; None if nowhere."""
    seeds = sorted(first.seeds.keys() & second.seeds.keys())
    gains = tuple(first.seeds[seed]["rmse"] - second.seeds[seed]["rmse"] for seed in seeds)
    return Duel(gains) if gains else None


def number(value: float) -> str:
    """`.0041`: four digits, no zero before the point."""
    return f"{value:.4f}".replace("0.", ".", 1)


def signed(value: float) -> str:
    """`−.0041`."""
    return f"{value:+.4f}".replace("0.", ".", 1).replace("-", "−")


def default_verdict(target: float, row: Row, own: Row) -> list[str]:
    """Whether the default model reaches its target, and beats the users' own means on enough splits."""
    found = duel(row, own)
    if found is None:
        return []
    mean, count = row.mean("rmse"), len(found.differences)
    reached = "holds" if mean <= target else "**does not hold**"
    wanted = BETTER_ON * count
    beats = "holds" if found.won >= wanted else "**does not hold**"
    return [
        f"RMSE ≤ {number(target)} at ε = 10: {mean:.5f} over {count} splits, {reached}.",
        f"Better than the users' own means on at least 9 of 10 splits: {found.won} of {count} "
        f"({found.text.partition(',')[0]}), {beats}.",
    ]


def below_own_mean(rows: Mapping[str, Row], own: Row) -> str:
    """Which rows do not beat the users' own means on average."""
    duels = {title: duel(row, own) for title, row in rows.items()}
    losers = [f"{title} ({signed(found.mean)})" for title, found in duels.items() if found and found.mean >= 0]
    return f"Not better than the users' own means: {'; '.join(losers) if losers else 'none'}."


def planner_verdict(planner: Row, uniform: Row) -> str:
    """Whether a planner is no worse than uniform on any split, and whether it gains."""
    found = duel(planner, uniform)
    if found is None:
        return "not compared with uniform yet."
    count, worst = len(found.differences), max(found.differences)
    within = "holds" if worst <= TOLERANCE else "**does not hold**"
    splits = f"{count} split{'s' if count > 1 else ''}"
    bound = (
        f"never worse than uniform by more than {number(TOLERANCE)}: at worst {signed(worst)} on {splits}, {within}."
    )
    return " ".join([bound, gain_of(found), *_after_the_same_rounds(planner, uniform)])


def _after_the_same_rounds(planner: Row, uniform: Row) -> list[str]:
    """How the two compare where both still ran, since a planner that spends faster stops earlier."""
    seeds = sorted(planner.curves.keys() & uniform.curves.keys())
    if all(planner.rounds.get(seed) == uniform.rounds.get(seed) for seed in seeds):
        return []
    last = min(max(map(int, row.curves[seed])) for seed in seeds for row in (planner, uniform))
    first, second = ([row.curves[seed][str(last)]["rmse"] for seed in seeds] for row in (planner, uniform))
    found = Duel(tuple(a - b for a, b in zip(first, second, strict=True)))
    said = [f"It stopped earlier; after {last} rounds of each, on the held-out ratings: {found.text}."]
    if set(seeds) <= planner.shares.keys() & uniform.shares.keys():
        own = fmean(planner.shares[seed] for seed in seeds)
        even = fmean(uniform.shares[seed] * planner.rounds[seed] / uniform.rounds[seed] for seed in seeds)
        said.append(
            f"It had then spent more: {own:.0%} of the budget in its {planner.span} rounds, uniform {even:.0%} in as many."
        )
    return said


def unmoved(rows: Mapping[str, tuple[Row, Row]]) -> str:
    """Under which noise ADAP did what uniform does, from pairs of the two; empty where under none."""
    told = []
    for how, (adap, uniform) in rows.items():
        both = adap.seeds.keys() & uniform.seeds.keys()
        same = sum(adap.seeds[seed] == uniform.seeds[seed] for seed in both)
        told += [f"{how} ({same} of {len(both)})"] if same else []
    if not told:
        return ""
    return (
        f"**ADAP** equals uniform to the last digit on some splits, or all: {'; '.join(told)}. Its clip, one for all clients"
        " and never above the run's, stayed at 1 there under the local noise, and its losses never fell often enough in a row"
        " for less noise."
    )


def gain_of(found: Duel) -> str:
    """A gain is a mean difference below 0 by two standard errors, that shows in four digits, on three splits at least."""
    count = len(found.differences)
    if count < 3:
        return f"{signed(found.mean)} on average; too few splits to claim a gain."
    error = stdev(found.differences) / count**0.5
    shows = number(abs(found.mean)) != number(0.0)
    if shows and found.mean < -2 * error and found.won == count:
        return f"It gains: {found.text}."
    return f"No gain can be claimed: {found.text}."
