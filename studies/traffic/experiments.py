"""Rows of the traffic study: the paper's model, seven methods, other networks, the default."""

from dataclasses import replace

from common.options import Scalar
from studies.harness.experiment import (
    HELPED_EPSILONS,
    Experiment,
    Settings,
    method_options,
    task_options,
    with_helpers,
)

STEPS = 16
"""Local steps per upload, the same for every method."""

UPLOADS, TRANSFORMER_UPLOADS = 40, 8
"""Uploads per client, times the cohort's share.

A transformer's step takes 300 times as long as a GRU's.
"""

SEEDS, CLAIMED_SEEDS = 3, 5
"""Seeds of a row, and of those that a claim of the paper names."""

LOGIC: Settings = {"property-weight": 1.0}
SPLIT: Settings = {"local-steps": 12, "cluster-steps": 4}
"""Sixteen steps per round, in two uploads."""
GENTLE: Settings = {"optimizer": "sgd", "lr": 0.1, "clip-norm": 1.0}
"""Rates of the default model, whose initial forecasts are already accurate."""


def make_row(
    key: str,
    title: str,
    method: str,
    options: Settings | None = None,
    task: Settings | None = None,
    *,
    exchanges: int = 1,
    uploads: int = UPLOADS,
    seeds: int = SEEDS,
) -> Experiment:
    """Return a row; `exchanges` is the number of uploads of a client in a round.

    Rows of the default model have keys that begin with `default`.
    """
    model = "default" if key.startswith("default") else "paper"
    prior: dict[str, Scalar] = {"repair": "none"}
    prior |= {"property": "paper", "property-weight": 0.0} if model == "paper" else {}
    local: Settings = {"optimizer": "adam", "lr": 0.01, "local-steps": STEPS, "weighting": "examples"}
    if model == "default":
        local = {**local, **GENTLE}
    rounds = uploads // exchanges
    settings = {
        "method": method,
        "task": "traffic",
        "model": model,
        "rounds": rounds,
        "evaluate-every": rounds,
        "federation.min-clients": 1,
        **task_options("traffic", {**prior, **(task or {})}),
        **method_options(method, {**local, **(options or {})}),
    }
    return Experiment(key, title, settings, seeds=seeds, protocol="origin-0")


def _paper_rows(network: str = "", lr: Settings | None = None, batch: int = 0) -> tuple[Experiment, ...]:
    """Return the methods of the paper's Table 2 on a network, by default the GRU."""
    prefix = f"{network}-" if network else ""
    task: dict[str, Scalar] = {"network": network} if network else {}
    task |= {"batch": batch} if batch else {}
    uploads = TRANSFORMER_UPLOADS if network == "transformer" else UPLOADS

    def row(key: str, title: str, options: Settings | None = None, *, logic: bool = False) -> Experiment:
        chosen, exchanges = {**(options or {}), **(lr or {})}, 2 if logic else 1
        named = {**(LOGIC if logic else {}), **task}
        seeds = SEEDS if network else CLAIMED_SEEDS
        return make_row(prefix + key, title, key, chosen, named, exchanges=exchanges, uploads=uploads, seeds=seeds)

    return (
        row("local", "local only"),
        row("fedavg", "FedAvg"),
        row("fedprox", "FedProx, μ .1", {"mu": 0.1}),
        row("fedrep", "FedRep (FedPer)"),
        row("ditto", "Ditto, λ 1"),
        row("ifca", "IFCA, 5 clusters"),
        row("fedstl", "**FedSTL**, 5 clusters, λ = 1, 12 + 4 steps", SPLIT, logic=True),
    )


PAPER = (
    *_paper_rows()[:4],
    make_row("fedrep-logic", "FedPer, λ = 1", "fedrep", task=LOGIC),
    *_paper_rows()[4:],
    make_row("fedstl-one", "FedSTL, 1 cluster, λ = 1, 12 + 4", "fedstl", {**SPLIT, "clusters": 1}, LOGIC, exchanges=2),
    make_row("fedstl-plain", "FedSTL, λ = 0, no cluster steps", "fedstl", {"cluster-steps": 0}, seeds=CLAIMED_SEEDS),
    make_row(
        "fedstl-logic", "FedSTL, λ = 1, no cluster steps", "fedstl", {"cluster-steps": 0}, LOGIC, seeds=CLAIMED_SEEDS
    ),
    make_row(
        "fedstl-loss",
        "FedSTL, λ = 1, no cluster steps, clusters by loss",
        "fedstl",
        {"cluster-steps": 0, "criterion": "loss"},
        LOGIC,
        seeds=CLAIMED_SEEDS,
    ),
    make_row(
        "fedstl-rounds",
        "**FedSTL**, 5 clusters, λ = 1, 12 + 4 steps, equal rounds",
        "fedstl",
        SPLIT,
        LOGIC,
        seeds=CLAIMED_SEEDS,
    ),
)

RIDGE = Experiment(
    "ridge",
    "**default**: own ridge shrunk to the shared one, in closed form",
    {
        "method": "ridge",
        "task": "traffic",
        "federation.min-clients": 1,
        **task_options("traffic", {"repair": "none"}),
    },
    seeds=1,
    protocol="origin-0",
)
"""Row of the closed form, which has two sums, all clients in each, and no randomness."""

HELPED = tuple(replace(with_helpers(RIDGE, epsilon), seeds=5) for epsilon in HELPED_EPSILONS)
"""Rows whose noise differs by seed."""

DEFAULT = (
    make_row("default", "default model: FedSTL on profile and own ridge", "fedstl", exchanges=2),
    make_row("default-single", "default, no cluster steps", "fedstl", {"cluster-steps": 0}),
    make_row("default-plain", "default without the ridge", "fedstl", task={"ridge": "none"}, exchanges=2),
    make_row("default-one", "default, 1 cluster", "fedstl", {"clusters": 1}, exchanges=2),
    make_row("default-free", "default, λ = 0", "fedstl", task={"property-weight": 0.0}, exchanges=2),
    make_row("default-fedrep", "default under FedRep", "fedrep"),
    make_row("default-fedavg", "default under FedAvg", "fedavg"),
)

NETWORKS = {
    "rnn": _paper_rows("rnn"),
    "lstm": _paper_rows("lstm"),
    "transformer": _paper_rows("transformer", {"lr": 0.001}, 16),
}
"""The paper's model on its other networks."""

EXPERIMENTS = (*PAPER, *DEFAULT, *(one for rows in NETWORKS.values() for one in rows))

STREETS = ("local", "fedavg", "fedrep", "ifca", "fedstl", "fedstl-plain", "default")
"""Rows on SUMO."""

ROLLING = (
    *("local", "fedavg", "fedrep", "ifca", "fedstl"),
    *("ridge", "default", "default-plain", "default-fedavg"),
)
"""Rows at earlier origins, one seed each."""

KINDS = {"paper": "two-hour ranges", "calibrated": "hourly, calibrated at 90 %"}
"""Kinds of property with baselines."""

FAULTS = {
    "sound": "sound",
    "dead-6h": "last 6 hours dead",
    "dead-24h": "last 24 hours dead",
    "spikes": "5 % spikes of ± 5 sd",
    "scaled": "counter × 1.5",
    "stuck": "stuck for the last 24 hours",
    "shifted": "clock an hour late",
    "drift": "counter drifts by 2 % a day",
}
"""Broken histories: key -> title."""

COLD_START_DAYS = (5, 7)


def at_origin(experiment: Experiment, origin: int) -> Experiment:
    """Return the row on the data up to an earlier origin, with one seed."""
    return replace(experiment, protocol=f"origin-{origin}", seeds=1)
