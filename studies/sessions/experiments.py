"""Rows of the sessions study: methods, their settings and the grids they are tuned over."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from common.options import Scalar
from studies.harness.experiment import (
    HELPED_EPSILONS,
    Experiment,
    Settings,
    method_options,
    task_options,
    with_helpers,
)

VALIDATION_SHARE = 0.2

SEEDS, CLAIMED_SEEDS = 3, 5
"""Seeds of a row, and of baselines and rows that a claim of the paper names."""

CLAIMED = (
    *("fedga", "fedyogi", "fedadam", "fedadam-dra"),
    *("fedavg", "fedavg-plateau", "fedavg-steps-5", "fedavgm", "fedprox", "fedgate"),
)

PLATEAU = 400
"""Rounds after which rows that learn slowly have caught up."""

CENTRAL_RATES, CENTRAL_EPOCHS = (0.001, 0.003), 6

Points = tuple[Mapping[str, Scalar], ...]

FINE: Points = (
    {"server-lr": 0.01, "tau": 1e-4},
    {"server-lr": 0.02, "tau": 1e-4},
    {"server-lr": 0.04, "tau": 1e-4},
    {"server-lr": 0.03, "tau": 1e-3},
)
"""Grid of all adaptive methods; τ = 1e-3 is the papers'.

DRA enlarges the denominator, so the grid is wide.
"""

COARSE: Points = FINE[1:3]
"""Grid of the set with too few rounds for a rate of .01.

τ = 1e-3 was worst for every method on the first set.
"""

COOLING: Points = FINE[:2]
"""For the set on which ηₛ falls towards the end; .04 learns less there."""

ABLATION: Points = FINE[:3]

LOCAL: Settings = {"lr": 1.0, "local-steps": 1, "clip-norm": 5.0, "weighting": "examples", "optimizer": "sgd"}


def make_row(
    key: str,
    title: str,
    method: str,
    grid: Points = (),
    options: Settings | None = None,
    *,
    model: str = "paper",
    network: str = "",
    tuned_as: str = "",
) -> Experiment:
    """Return a row; without a grid it has the data set's grid of adaptive methods.

    Raises:
        ValueError: FedProx with one local step, which is FedAvg.
    """
    if method == "fedprox" and {**LOCAL, **(options or {})}["local-steps"] == 1:
        raise ValueError("FedProx with one local step is FedAvg; set local-steps above 1")
    task: dict[str, Scalar] = {"loss": "full"}
    task |= {"network": network} if network else {}
    settings = {
        "method": method,
        "task": "sessions",
        "model": model,
        "federation.min-clients": 1,
        **task_options("sessions", task),
        **method_options(method, {**LOCAL, **(options or {})}),
    }
    points = tuple(method_options(method, point) for point in grid)
    return Experiment(key, title, settings, points, seeds=CLAIMED_SEEDS if key in CLAIMED else SEEDS, tuned_as=tuned_as)


def _grid(**values: Sequence[Scalar]) -> Points:
    """Return all combinations of the values of options."""
    names = [name.replace("_", "-") for name in values]
    return tuple(dict(zip(names, point, strict=True)) for point in product(*values.values()))


WITHOUT_SERVER_RATE = ("fedprox", "fedrule")
"""Methods whose server adds the mean update as it is."""

RIDGE = Experiment(
    "ridge",
    "**default**: own history + SLIST, in closed form",
    {"method": "ridge", "task": "sessions", "federation.min-clients": 1},
    seeds=CLAIMED_SEEDS,
)
"""Row of the closed form, which has as many rounds as sums, all clients in each, and no point to tune."""

HELPED = tuple(with_helpers(RIDGE, epsilon) for epsilon in HELPED_EPSILONS)

_FEDAVG = make_row("fedavg", "FedAvg", "fedavg", _grid(lr=(0.3, 1.0, 3.0), local_steps=(1, 5)))

LOCAL_ROWS = (
    _FEDAVG,
    replace(
        _FEDAVG,
        key="fedavg-plateau",
        title=f"FedAvg, {PLATEAU} rounds",
        settings={**_FEDAVG.settings, "rounds": PLATEAU},
        tuned_as="fedavg",
    ),
    make_row("fedavg-steps-5", "FedAvg, 5 local steps", "fedavg", _grid(lr=(0.3, 1.0), local_steps=(5,))),
    make_row("fedavgm", "FedAvgM, β .9", "fedavg", _grid(lr=(0.1, 0.3, 1.0), local_steps=(1, 5)), {"momentum": 0.9}),
    make_row(
        "fedprox", "FedProx, 5 local steps", "fedprox", _grid(lr=(0.3, 1.0), mu=(0.001, 0.01, 0.1)), {"local-steps": 5}
    ),
    make_row(
        "fedgate",
        "control variates (FedRule's Eq 3)",
        "fedrule",
        _grid(lr=(0.3, 1.0, 3.0), local_steps=(1, 5)),
        {"control": "eq3"},
    ),
)
"""Rows without an adaptive server, each tuned over six points of its local options."""

UNIFORM_ROWS = tuple(
    make_row(
        f"{method}-uniform", f"{title}, uniform weights", method, options={"weighting": "uniform"}, tuned_as=method
    )
    for method, title in (("fedga", "FedGA, `saturated`"), ("fedyogi", "FedYogi"), ("fedadam", "FedAdam"))
)
"""Rows in which all clients have the same weight, as in the paper, at the points of the weighted ones."""

EXPERIMENTS = (
    make_row("fedga", "FedGA, `saturated`", "fedga"),
    make_row("fedyogi", "FedYogi", "fedyogi"),
    make_row("fedadam", "FedAdam", "fedadam"),
    make_row("default", "default model: FedGA + own history", "fedga", model="default", tuned_as="fedga"),
    RIDGE,
    *HELPED,
    *LOCAL_ROWS,
    *UNIFORM_ROWS,
    make_row("csme", "C-SME `saturated` without DRA", "fedga", ABLATION, {"dra": False}),
    make_row("fedadam-dra", "FedAdam + DRA", "fedga", ABLATION, {"second-moment": "adam"}),
    make_row("fedyogi-dra", "FedYogi + DRA", "fedga", ABLATION, {"second-moment": "yogi"}),
    make_row("fedga-ramp", "FedGA, `ramp`", "fedga", ABLATION, {"second-moment": "ramp"}),
    make_row("fedga-quadratic", "FedGA, `quadratic`", "fedga", ABLATION, {"second-moment": "quadratic"}),
    make_row("fedga-tagnn", "FedGA, `saturated`, TAGNN", "fedga", network="tagnn", tuned_as="fedga"),
)

SAMPLED = tuple(
    replace(
        one,
        key=f"{one.key}-sampled",
        title=f"{one.title}, sampled softmax",
        settings={**one.settings, **task_options("sessions", {"loss": "sampled"})},
        seeds=SEEDS,
        tuned_as=f"{one.tuned_as}-sampled" if one.tuned_as else "",
    )
    for one in EXPERIMENTS
    if one.key in ("fedga", "default")
)
"""Rows with sampled softmax in place of the full one, tuned over the same grid."""

EQUAL_BYTES = replace(EXPERIMENTS[0], key="fedga-bytes", title="FedGA, `saturated`, fewer rounds", seeds=SEEDS)
"""Row with the full softmax that sends as much up as the sampled one.

It is tuned for its own rounds.
"""

CENTRAL = Experiment(
    "central", "SR-GNN, central, Adam", grid=tuple({"lr": rate} for rate in CENTRAL_RATES), seeds=SEEDS
)

BASELINES = {
    "popularity": "popularity",
    "session-items": "items of the session, by recency",
    "bigram": "bigram + popularity",
    "session-rules": "sequential rules",
    "session-knn": "session-kNN, 200 neighbours (central)",
    "own-history": "own history (frequency)",
    "own-bigram": "own bigram + frequency + session",
    "own-rules": "own + sequential rules",
}
"""Baselines that need no network: key -> title."""

TITLES = {
    **{key: f"*baseline:* {title}" for key, title in BASELINES.items()},
    **{one.key: one.title for one in (CENTRAL, *EXPERIMENTS)},
}
"""All rows in the order of the tables: key -> title."""
