"""Rows of the rules study: methods, their settings and the grids they are tuned over."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from common.options import Scalar
from studies.harness.experiment import (
    HELPED_EPSILONS,
    Experiment,
    Settings,
    method_options,
    task_options,
    with_helpers,
)

Setup = Literal["A", "B"]

SETS: dict[Setup, str] = {
    "B": "the names' first words, pairs used at least 5 times",
    "A": "whole names, trigger-action pairs used at least 8 times",
}
"""Setups of the IFTTT set; the first has the pairs of the paper's Table 2."""

ROUNDS, LOCAL_STEPS = 100, 3
EVALUATE_EVERY = 10
"""Rounds between two evaluations of the validation loss: a stopping round is a multiple of it."""

VALIDATION_SHARE = 0.2

Points = tuple[Mapping[str, Scalar], ...]

SGD: Points = ({"lr": 0.3}, {"lr": 3}, {"lr": 10, "clip-norm": 0.2})
ADAM: Points = ({"lr": 0.003}, {"lr": 0.01})
SERVER_ADAM: Points = ({"server-lr": 0.003}, {"server-lr": 0.01}, {"server-lr": 0.03})
"""One grid for all methods of a kind; the server's Adam works on local SGD of rate 0.1."""

LOCAL_SGD: Settings = {"optimizer": "sgd"}
PERSIST: Settings = {"optimizer": "adam", "moments": "persist"}
RESET: Settings = {"optimizer": "adam", "moments": "reset"}
EQ3: Settings = {"optimizer": "sgd", "control": "eq3"}
GRAD_MEAN: Settings = {**PERSIST, "control": "grad_mean"}
BEHIND_SERVER: Settings = {"optimizer": "sgd", "lr": 0.1, "tau": 1e-6}
"""Client options under a server optimizer; τ is well below the mean update's size.

At τ = 1e-3 it dominates the denominator, and server Adam hardly moves.
"""
RULE_BEHIND_SERVER: Settings = {**BEHIND_SERVER, "control": "eq3", "server-optimizer": "adam"}

RIDGE = "ridge"
"""Row of the closed form in plaintext."""

COMMAND = {"command": "`fedloom simulate --task rules --data ifttt-recrules`"}
"""Row of what a user's command prints: key -> title."""


def _row(
    key: str,
    title: str,
    method: str,
    grid: Points,
    options: Settings,
    *,
    model: Literal["paper", "default"] = "paper",
    central: bool = False,
    rounds: int = ROUNDS,
    tuned_as: str = "",
) -> Experiment:
    """Return a row; if `central`, one client holds all homes (GraphRule), else each client is a home."""
    task: dict[str, Scalar] = {"negatives": 1} if model == "paper" else {}
    settings = {
        "method": method,
        "model": model,
        "rounds": rounds,
        "federation.min-clients": 1,
        **method_options(method, {"local-steps": LOCAL_STEPS, **options}),
        **task_options("rules", task),
    }
    points = tuple(method_options(method, point) for point in grid)
    return Experiment(key, title, settings, points, central=central, tuned_as=tuned_as)


_CLOSED = _row(RIDGE, "**default**: EASE over triples, in closed form", "ridge", ({},), {}, model="default")
"""Row of the closed form, which has as many rounds as sums and no point to tune."""


EXPERIMENTS = (
    _row("graphrule-sgd", "GraphRule (central), SGD", "fedavg", SGD, LOCAL_SGD, central=True),
    _row("graphrule-adam", "GraphRule (central), Adam", "fedavg", ADAM, PERSIST, central=True),
    _row("graphrule-server", "GraphRule (central), server Adam", "fedadam", SERVER_ADAM, BEHIND_SERVER, central=True),
    _row("fedgnn-sgd", "FedGNN, SGD", "fedavg", SGD, LOCAL_SGD),
    _row("fedgnn-adam", "FedGNN, local Adam, moments persist", "fedavg", ADAM, PERSIST),
    _row(
        "fedgnn-steps",
        "FedGNN, local Adam, twice the local steps",
        "fedavg",
        ADAM,
        {**PERSIST, "local-steps": 2 * LOCAL_STEPS},
    ),
    _row("fedgnn-rounds", "FedGNN, local Adam, twice the rounds", "fedavg", ADAM, PERSIST, rounds=2 * ROUNDS),
    _row("fedgnn-adam-reset", "FedGNN, local Adam, moments reset", "fedavg", ADAM, RESET),
    _row("fedgnn-server", "FedGNN, server Adam", "fedadam", SERVER_ADAM, BEHIND_SERVER),
    _row("fedrule-sgd", "FedRule, SGD, Eq 3", "fedrule", SGD, EQ3),
    _row("fedrule-adam", "FedRule, local Adam, `grad_mean`", "fedrule", ADAM, GRAD_MEAN),
    _row(
        "fedrule-as-fedgnn",
        "FedRule, local Adam, at FedGNN's rate and rounds",
        "fedrule",
        ADAM,
        GRAD_MEAN,
        tuned_as="fedgnn-adam",
    ),
    _row(
        "fedgnn-as-fedrule",
        "FedGNN, local Adam, at FedRule's rate and rounds",
        "fedavg",
        ADAM,
        PERSIST,
        tuned_as="fedrule-adam",
    ),
    _row("fedrule-server", "FedRule, Eq 3, server Adam", "fedrule", SERVER_ADAM, RULE_BEHIND_SERVER),
    _row(
        "default-fedrule",
        "default model, FedRule, local Adam, `grad_mean`",
        "fedrule",
        ADAM,
        GRAD_MEAN,
        model="default",
    ),
    _row(
        "default-fedgnn", "default model, FedGNN, server Adam", "fedadam", SERVER_ADAM, BEHIND_SERVER, model="default"
    ),
    _CLOSED,
    replace(
        _CLOSED,
        key="ridge-summed",
        title="closed form in sums of two helpers",
        settings={**_CLOSED.settings, "privacy.trust": "helpers"},
    ),
    *(with_helpers(_CLOSED, epsilon) for epsilon in (*HELPED_EPSILONS, 1.0)),
)

_RATES: Points = tuple({"lr": rate} for rate in (0.003, 0.01, 0.03))

FACTORS = Experiment("mf", "matrix factorization (central), Adam", grid=_RATES)
CONVOLVED = Experiment("gcmc", "GCMC (central), Adam", grid=_RATES)
"""Baselines on homes and rules without devices, tuned as the methods are."""

COUNTS = {
    "own-relation": "counts: relation frequency in the home itself",
    "counts-relation": "counts: relation frequency",
    "counts-sides": "counts: trigger × relation, action × relation",
    "counts-triple": "counts: triples with back-off",
}
"""Baselines that need no training: key -> title."""

STACKED = 32
"""Clients that train stacked: small cohorts of similar size need little padding."""

TITLES = {**{one.key: one.title for one in (*EXPERIMENTS, FACTORS, CONVOLVED)}, **COUNTS}
"""All rows in the order of the tables: key -> title."""
