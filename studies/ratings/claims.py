"""Claims of the ratings page, each checked against the stored numbers."""

import re
from collections.abc import Mapping

from common.text import count
from studies.harness.claim import Claim, Comparison, compare
from studies.harness.experiment import Experiment
from studies.harness.row import Row, mean
from studies.ratings.noise import budget_share

ERRORS = ("rmse", "mae", "f1")

BETTER_ON = 0.9
"""Share of the splits on which the default has to be better than the users' own means."""

GAINS = {
    "ml": {1.0: 0.0030, 2.0: 0.0062, 5.0: 0.0105, 10.0: 0.0125},
    "ft": {1.0: 0.0010, 2.0: 0.0014, 5.0: 0.0018, 10.0: 0.0020},
}
"""Data set -> ε -> RMSE by which two helpers' noise has to stay below the users' own means."""

TOLERANCE = 0.001
"""RMSE by which a planner may be worse than uniform under the same filter."""


def short(text: str) -> str:
    """Return text with `.0041` for `0.0041`."""
    return re.sub(r"(?<![\d.])0\.", ".", text)


def number(value: float) -> str:
    """Return `.0041`: four digits, no zero before the point."""
    return short(f"{value:.4f}")


def signed_number(value: float) -> str:
    """Return `−.0041`."""
    return short(f"{value:+.4f}").replace("-", "−")


def text_of(found: Comparison) -> str:
    """Return `−.0041 ± .0003, 10/10`."""
    return short(found.text(4))


def rounds(row: Row) -> dict[int, int]:
    """Return split -> rounds done."""
    return {seed: int(count) for seed, count in row.values("rounds").items()}


def span(row: Row) -> str:
    """Return the rounds done: `20`, or `17–20` where splits differ."""
    done = sorted(set(rounds(row).values()))
    return "–".join(str(count) for count in (done if len(done) < 2 else (done[0], done[-1])))


def default_verdict(target: float, row: Row, own: Row) -> list[Claim]:
    """Check that the default model reaches its target and beats the users' own means on enough splits."""
    found = compare(row, own, "rmse")
    if found is None:
        return []
    error = row.mean("rmse")
    difference = text_of(found).partition(",")[0]
    return [
        Claim(f"RMSE ≤ {number(target)} at ε = 10: {error:.5f} over {found.seeds} splits", error <= target),
        Claim(
            f"Lower RMSE than the users' own means on at least 9 of 10 splits: {found.won} of {found.seeds} ({difference})",
            found.won >= BETTER_ON * found.seeds,
        ),
    ]


def helper_verdict(gains: Mapping[float, float], rows: Mapping[str, Row], own: Row) -> list[Claim]:
    """Check the gains with two helpers over the users' own means, and that noise of each client is worse.

    Args:
        gains: ε -> least gain.
        rows: Rows of one report by key.
        own: Row of the users' own means.
    """
    claims = []
    for epsilon, gain in gains.items():
        helped, local = rows.get(f"helpers-{epsilon:g}"), rows.get(f"privunit-{epsilon:g}")
        found = compare(helped, own, "rmse") if helped else None
        against = compare(helped, local, "rmse") if helped and local else None
        if found and against:
            holds = found.mean <= -gain and found.won >= BETTER_ON * found.seeds and against.mean < 0
            bound = (
                f"RMSE at least {number(gain)} below own mean at ε = {epsilon:g}, lower on 9 of 10 and than PrivUnitG"
            )
            claims.append(Claim(f"{bound}: {text_of(found)}; {text_of(against)}", holds))
    return claims


def below_own_mean(rows: Mapping[str, Row], own: Row) -> str:
    """Name the rows that are not better than the users' own means on average."""
    found = {title: compare(row, own, "rmse") for title, row in rows.items()}
    worse = [f"{title} ({signed_number(one.mean)})" for title, one in found.items() if one and one.mean >= 0]
    return f"Not better than the users' own means: {'; '.join(worse) if worse else 'none'}."


def planner_verdict(one: Experiment, planner: Row, uniform: Row) -> str:
    """Check that a planner is no worse than uniform on any split, and state its gain.

    Args:
        one: The planner's experiment.
        planner: Its row.
        uniform: Row of the even split under the same noise.
    """
    found = compare(planner, uniform, "rmse")
    if found is None:
        return "not compared with uniform yet."
    worst, splits = max(found.differences), count(found.seeds, "split")
    bound = Claim(
        f"RMSE never above uniform's by more than {number(TOLERANCE)}: at worst {signed_number(worst)} on {splits}",
        worst <= TOLERANCE,
    )
    return " ".join([str(bound), gain_of(found), *_after_equal_rounds(one, planner, uniform)])


def _after_equal_rounds(one: Experiment, planner: Row, uniform: Row) -> list[str]:
    """Compare the two at the last round that both have; a planner that spends faster stops earlier."""
    done, even_done = rounds(planner), rounds(uniform)
    seeds = sorted(seed for seed in planner.trials.keys() & uniform.trials.keys() if planner.trials[seed].curve)
    if all(done[seed] == even_done[seed] for seed in seeds):
        return []
    last = min(max(row.trials[seed].curve) for seed in seeds for row in (planner, uniform))
    ours, even = (tuple(row.trials[seed].curve[last]["rmse"] for seed in seeds) for row in (planner, uniform))
    sentences = [
        f"It stopped earlier; after {last} rounds of each, on held-out ratings: {text_of(Comparison(ours, even))}."
    ]
    spent, even_spent = (row.values("epsilon_spent") for row in (planner, uniform))
    if set(seeds) <= spent.keys() & even_spent.keys():
        share = mean(budget_share(one, spent[seed]) for seed in seeds)
        even_share = mean(budget_share(one, even_spent[seed]) * done[seed] / even_done[seed] for seed in seeds)
        sentences.append(
            f"By then it had spent more: {share:.0%} of the budget in its {span(planner)} rounds,"
            f" uniform {even_share:.0%} in as many."
        )
    return sentences


def equal_to_uniform(rows: Mapping[str, tuple[Row, Row]]) -> str:
    """State under which noise ADAP equals uniform, from pairs of the two; nothing where it never does."""
    equal = []
    for noise, (adap, uniform) in rows.items():
        both = adap.trials.keys() & uniform.trials.keys()
        same = sum(_errors(adap, seed) == _errors(uniform, seed) for seed in both)
        equal += [f"{noise} ({same} of {len(both)})"] if same else []
    if not equal:
        return ""
    return (
        f"**ADAP** has the same errors as uniform on some splits, or all: {'; '.join(equal)}. Its clip, one for all clients"
        " and never above the run's, stayed at 1 there under the local noise, and its losses never fell often enough in a row"
        " for less noise."
    )


def _errors(row: Row, seed: int) -> list[float]:
    return [row.trials[seed].metrics[name] for name in ERRORS if name in row.trials[seed].metrics]


def gain_of(found: Comparison) -> str:
    """State a gain: on three splits or more, a mean difference below 0 by two standard errors.

    The difference has to show in four digits.
    """
    if found.seeds < 3:
        return f"{signed_number(found.mean)} on average; too few splits to claim a gain."
    error = found.deviation / found.seeds**0.5
    shows = number(abs(found.mean)) != number(0.0)
    if shows and found.mean < -2 * error and found.won == found.seeds:
        return f"It gains: {text_of(found)}."
    return f"No gain can be claimed: {text_of(found)}."
