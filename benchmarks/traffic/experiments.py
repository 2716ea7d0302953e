"""The rows of the traffic tables: the paper's model under seven methods and on other networks, and the default."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from common.options import Scalar

Settings = dict[str, Scalar]

STEPS = 16
"""Local steps an upload, the same for every method."""


@dataclass(frozen=True)
class Experiment:
    """One row.

    Args:
        key: Short name, also of cached results.
        title: Name in the table.
        method: As in `--method`.
        settings: Options of the method.
        task: Options of the task.
        model: As in `--set model=…`.
        exchanges: Uploads a client makes in a round.
        seeds: Most seeds that it is worth.
        uploads: Updates of a client where they differ from its set's; 0 for those.
    """

    key: str
    title: str
    method: str
    settings: Settings = field(default_factory=dict)
    task: Settings = field(default_factory=dict)
    model: str = "paper"
    exchanges: int = 1
    seeds: int = 10
    uploads: int = 0

    def config(self, seed: int, uploads: int, cohort: float, data: Mapping[str, Scalar] | None = None) -> Settings:
        """The run's flat configuration, without its vocabulary and run id; `data`: options of the task for these data."""
        local: Settings = {"optimizer": "adam", "lr": 0.01, "local-steps": STEPS, "weighting": "examples"}
        prior: Settings = {"property": "paper", "property-weight": 0.0} if self.model == "paper" else {}
        rounds = (self.uploads or uploads) // self.exchanges
        whole: Settings = {
            "method": self.method,
            "task": "traffic",
            "model": self.model,
            "seed": seed,
            "rounds": rounds,
            "evaluate-every": rounds,
            "federation.min-clients": 1,
            "federation.cohort": cohort,
        }
        whole |= {f"tasks.traffic.{key}": value for key, value in {**prior, **self.task, **(data or {})}.items()}
        return whole | {f"algorithm.{self.method}.{key}": value for key, value in {**local, **self.settings}.items()}


LOGIC: Settings = {"property-weight": 1.0}
SPLIT: Settings = {"local-steps": 12, "cluster-steps": 4}
"""Sixteen steps in all, in two exchanges."""
GENTLE: Settings = {"optimizer": "sgd", "lr": 0.1, "clip-norm": 1.0}
"""Rates of the default model, whose start is already good."""

EXPERIMENTS = (
    Experiment("local", "local only", "local"),
    Experiment("fedavg", "FedAvg", "fedavg"),
    Experiment("fedprox", "FedProx, μ .1", "fedprox", {"mu": 0.1}),
    Experiment("fedrep", "FedRep (FedPer)", "fedrep"),
    Experiment("fedrep-logic", "FedPer, λ = 1", "fedrep", task=LOGIC),
    Experiment("ditto", "Ditto, λ 1", "ditto"),
    Experiment("ifca", "IFCA, 5 clusters", "ifca"),
    Experiment("fedstl", "**FedSTL**, 5 clusters, λ = 1, 12 + 4 steps", "fedstl", SPLIT, LOGIC, exchanges=2),
    Experiment(
        "fedstl-one",
        "FedSTL, 1 cluster, λ = 1, 12 + 4",
        "fedstl",
        {**SPLIT, "clusters": 1},
        LOGIC,
        exchanges=2,
    ),
    Experiment("fedstl-plain", "FedSTL, λ = 0, no cluster steps", "fedstl", {"cluster-steps": 0}),
    Experiment(
        "default", "**default**: FedSTL on profile and own ridge", "fedstl", GENTLE, model="default", exchanges=2
    ),
    Experiment(
        "default-plain", "default without the ridge", "fedstl", GENTLE, {"ridge": "none"}, model="default", exchanges=2
    ),
    Experiment(
        "default-shared",
        "default on half own ridge, half everybody's (`count-offset`)",
        "fedstl",
        GENTLE,
        {"count-offset": True},
        model="default",
        exchanges=2,
    ),
    Experiment("default-one", "default, 1 cluster", "fedstl", {**GENTLE, "clusters": 1}, model="default", exchanges=2),
    Experiment(
        "default-free",
        "default, λ = 0",
        "fedstl",
        GENTLE,
        {"property-weight": 0.0},
        model="default",
        exchanges=2,
    ),
    Experiment("default-fedrep", "default under FedRep", "fedrep", GENTLE, model="default"),
    Experiment("default-fedavg", "default under FedAvg", "fedavg", GENTLE, model="default"),
)

STREETS = ("local", "fedavg", "fedrep", "ifca", "fedstl", "fedstl-plain", "default")
"""Rows on SUMO."""

ROLLING = (
    *("local", "fedavg", "fedrep", "ifca", "fedstl"),
    *("default", "default-shared", "default-plain", "default-fedavg"),
)
"""Rows at other origins, one seed each."""

TABLE_2 = ("local", "fedavg", "fedprox", "fedrep", "ditto", "ifca", "fedstl")
"""The paper's, and each sensor alone."""


def on(
    network: str, settings: Settings | None = None, task: Settings | None = None, *, seeds: int, uploads: int = 0
) -> tuple[Experiment, ...]:
    """The rows of the paper's Table 2 on another network."""
    return tuple(
        replace(
            one,
            key=f"{network}-{one.key}",
            settings={**one.settings, **(settings or {})},
            task={**one.task, **(task or {}), "network": network},
            seeds=seeds,
            uploads=uploads,
        )
        for one in EXPERIMENTS
        if one.key in TABLE_2
    )


NETWORKS = {
    "rnn": on("rnn", seeds=3),
    "lstm": on("lstm", seeds=3),
    "transformer": on("transformer", {"lr": 0.001}, {"batch": 16}, seeds=3, uploads=8),
}
"""A transformer's step is 18 GFLOP at a batch of 64 (two layers over 120 tokens) where a GRU's is .06, so it has fewer."""
