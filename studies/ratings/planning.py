"""Regret of planners against the best fixed plan in hindsight, and targets of wide arms."""

from collections.abc import Collection, Mapping
from statistics import fmean

from common.text import count
from studies.harness.claim import Claim, Comparison, compare
from studies.harness.row import Row, Trial
from studies.ratings.claims import TOLERANCE, number, signed_number, text_of

LEAST_GAIN, GAIN_EPSILON = 0.005, 1.0
"""RMSE by which wide arms have to be better than the even split, and the ε at which they have to."""

ONE_ROUND = "one round of the even split"
FIXED = {"uniform": "the even split over 20 rounds", "uniform18": "over 18 rounds"}
"""Fixed plans: part of the row's key -> name.

A further one stops after the first round of the even split.
"""

Regrets = dict[int, tuple[str, list[float]]]
"""Split -> best fixed plan in hindsight, and cumulative regret after each round."""


def path_of(trial: Trial, rounds: int) -> list[float]:
    """Return RMSE on held-out ratings after each round; a plan that has stopped keeps its model."""
    last = trial.curve[min(trial.curve)]["rmse"]
    path = []
    for number_ in range(1, rounds + 1):
        last = trial.curve.get(number_, {}).get("rmse", last)
        path.append(last)
    return path


def fixed_plans(rows: Mapping[str, Row], cell: str, seed: int, rounds: int) -> dict[str, list[float]]:
    """Return name -> RMSE after each round, of the fixed plans that were run on a split."""
    found = {name: rows[f"{key}-{cell}"].trials.get(seed) for key, name in FIXED.items() if f"{key}-{cell}" in rows}
    plans = {name: path_of(trial, rounds) for name, trial in found.items() if trial and trial.curve}
    if even := plans.get(FIXED["uniform"]):
        plans[ONE_ROUND] = even[:1] * rounds
    return plans


def regrets(rows: Mapping[str, Row], key: str, cell: str, rounds: int) -> Regrets:
    """Return split -> best fixed plan in hindsight, and the planner's cumulative regret after each round.

    Rewards are falls of RMSE, so their sums telescope: the regret Σ(r*_s − r_s) is the difference of both RMSE.
    """
    regret: Regrets = {}
    for seed, trial in sorted(rows[key].trials.items()) if key in rows else ():
        plans = fixed_plans(rows, cell, seed, rounds)
        if plans and trial.curve:
            best = min(plans, key=lambda name: plans[name][-1])
            ours = path_of(trial, rounds)
            regret[seed] = best, [mine - theirs for mine, theirs in zip(ours, plans[best], strict=True)]
    return regret


def compared(rows: Mapping[str, Row], keys: Collection[str], cell: str, rounds: int) -> dict[str, Regrets]:
    """Return row -> regrets of those rows that were run, on the splits that all of them have."""
    found = {key: one for key in keys if (one := regrets(rows, key, cell, rounds))}
    shared = set.intersection(*map(set, found.values())) if found else set()
    return {key: {seed: one[seed] for seed in sorted(shared)} for key, one in found.items() if shared}


def regret_text(rows: Mapping[str, Row], keys: Mapping[str, str], cell: str, rounds: int) -> str:
    """State the mean regret of planners, `keys` with their names, after all rounds; empty without any."""
    found = compared(rows, keys, cell, rounds)
    if not found:
        return ""
    values = ", ".join(
        f"{keys[key]} {signed_number(fmean(path[-1] for _, path in one.values()))}" for key, one in found.items()
    )
    plans = [best for best, _ in next(iter(found.values())).values()]
    best = max(sorted(set(plans)), key=plans.count)
    return (
        f"{values} after {rounds} rounds on {count(len(plans), 'split')}; the best fixed plan was {best} on"
        f" {plans.count(best)}"
    )


def wide_verdict(epsilon: float, wide: Row, uniform: Row, own: Row) -> list[Claim]:
    """Check the delivered model of wide arms against the even split and against releasing nothing.

    Args:
        epsilon: ε of both rows.
        wide: Row of BGTplanner with wide arms.
        uniform: Row of the even split under the same noise.
        own: Row of the users' own means, which send nothing.
    """
    delivered = wide.values("delivered_rmse")
    even, nothing = uniform.values("rmse"), own.values("rmse")
    seeds = sorted(delivered.keys() & even.keys() & nothing.keys())
    if not seeds:
        return []
    worst = max(delivered[seed] - min(even[seed], nothing[seed]) for seed in seeds)
    splits = count(len(seeds), "split")
    bound = f"never above the better of even split and own mean by more than {number(TOLERANCE)}"
    claims = [Claim(f"Delivered RMSE {bound}: at worst {signed_number(worst)} on {splits}", worst <= TOLERANCE)]
    if epsilon == GAIN_EPSILON:
        found = Comparison(tuple(delivered[seed] for seed in seeds), tuple(even[seed] for seed in seeds))
        gain = f"Delivered RMSE at least {number(LEAST_GAIN)} below the even split: {text_of(found)}"
        claims.append(Claim(gain, found.mean <= -LEAST_GAIN))
    return claims


def last_against_uniform(wide: Row, uniform: Row) -> str:
    """Compare the last models, by which the choice of the best round does not count."""
    found = compare(wide, uniform, "rmse")
    return f"Its last model against the even split's: {text_of(found)}." if found else ""
