"""The rows: the default with and without other markets' counts, and the paper's methods on SGC."""

from dataclasses import dataclass, field

from common.options import Scalar

Settings = dict[str, Scalar]

ROUNDS, STEPS = 10, 20
"""Of the networks: 200 local steps of 1,024 triples, for every method."""

RATES = (0.00125, 0.005, 0.02, 0.08, 0.32, 1.28)
"""Adam's rates that every network's method may choose from."""

HELD_BACK = 0.1
"""Share of the training pairs on which it is chosen: random pairs, seed 0, MRR@20 over the queries of all markets."""


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
    """

    key: str
    title: str
    method: str
    settings: Settings = field(default_factory=dict)
    task: Settings = field(default_factory=dict)
    model: str = "paper"

    @property
    def tuned(self) -> bool:
        """Whether its rate is chosen from the grid."""
        return self.model == "paper"

    def config(self, seed: int, protocol: str, rate: float, **task: Scalar) -> Settings:
        """The run's flat configuration, without its vocabulary and run id."""
        local: Settings = {"optimizer": "adam", "lr": rate, "local-steps": STEPS}
        whole: Settings = {"method": self.method, "task": "markets", "model": self.model, "seed": seed}
        whole |= {"rounds": ROUNDS, "evaluate-every": ROUNDS - 1, "federation.min-clients": 1}
        options = {"protocol": protocol, "features": "ids", "adjacency": "counts", **self.task, **task}
        whole |= {f"tasks.markets.{key.replace('_', '-')}": value for key, value in options.items()}
        return whole | {f"algorithm.{self.method}.{key}": value for key, value in {**local, **self.settings}.items()}


COUNTS: Settings = {"count-offset": True}
NOISED: Settings = {**COUNTS, "count-epsilon": 8.0}

ALPHA = 100.0
"""α of Per-FedAvg, by held-back pairs of the two smallest markets: a mean over triples has small gradients."""

LAM = 0.001
"""λ of pFedMe, by held-back pairs of the three smallest markets (.390 against .336 at .01, .365 at .1 and .368 at 1); with
η = 1/λ a market sends the model that it found."""

BETA: Settings = {"beta": 1.0}
"""Plain averaging, the authors' default: half of each mean step, their example's, is too little for ten rounds, by held-back
pairs (.341 against .329 for PF-GNN)."""

SIAMESE: Settings = {"network": "siamese"}
SPE: Settings = {"network": "spe"}

SCORER = Experiment("default", "**default**: federated scorer, others' counts", "fedavg", task=COUNTS, model="default")
SCORER_NOISED = Experiment(
    "default-noised", "default, counts noised at ε = 8 for each user", "fedavg", task=NOISED, model="default"
)
SCORER_RATE = 0.05

EXPERIMENTS = (
    SCORER,
    SCORER_NOISED,
    Experiment("default-alone", "default, no counts shared", "fedavg", model="default"),
    Experiment("default-pfgnn", "the same scorer under PF-GNN (Eq 13)", "pfgnn", task=COUNTS, model="default"),
    Experiment("default-local", "the same scorer, each market its own", "local", model="default"),
    Experiment("local", "local GNN (SGC + BPR)", "local"),
    Experiment("mlp", "FeatMLP, each market its own", "local", task={"hops": 0}),
    Experiment("fedavg", "F-GNN (FedAvg of W)", "fedavg"),
    Experiment("siamese", "Siamese, each market its own", "local", task=SIAMESE),
    Experiment("siamese-fedavg", "F-Siamese (FedAvg of the tower)", "fedavg", task=SIAMESE),
    Experiment("spe", "SPE, each market its own", "local", task=SPE),
    Experiment("spe-fedavg", "F-SPE (FedAvg of all but the items' own vectors)", "fedavg", task=SPE),
    Experiment("perfedavg", "Per-FedAvg of W, first order, α 100", "perfedavg", {"alpha": ALPHA}),
    Experiment("pfedme", "pFedMe of W, λ .001", "pfedme", {"lam": LAM, "envelope-lr": 1 / LAM}),
    Experiment("pfgnn", "PF-GNN (Eq 13)", "pfgnn", {**BETA, "plus": False}),
    Experiment("pfgnn-plus", "**PF-GNN+** (Eq 15–16), ξ a sum as in the paper", "pfgnn", BETA),
    Experiment(
        "pfgnn-centroid",
        "**PF-GNN+**, ξ the clusters' means",
        "pfgnn",
        {**BETA, "summary": "centroid", "lambda-s": 0.001},
    ),
)
