"""The rows of the sessions table: which methods, tuned over which grid."""

from dataclasses import dataclass, field

from common.options import Scalar

Settings = dict[str, Scalar]

TUNING_SEED = 100
"""Rates are chosen on this seed's validation split; it is not among the seeds reported."""

VALIDATION_SHARE = 0.2

CENTRAL_RATES, CENTRAL_EPOCHS = (0.001, 0.003), 6


@dataclass(frozen=True)
class Experiment:
    """One row: a method over one grid.

    Args:
        key: Short name, also of cached results.
        title: Name in the table.
        method: As in `--method`.
        grid: What is tuned: options of the method, keys without their section; empty for the data set's own grid of
            adaptive methods.
        settings: Options of the method that all points share.
        task: Options of the task.
        model: As in `--set model=…`.
        counts: Whether clients share summed sequential rules.
    """

    key: str
    title: str
    method: str
    grid: tuple[Settings, ...]
    settings: Settings = field(default_factory=dict)
    task: Settings = field(default_factory=dict)
    model: str = "paper"
    counts: bool = False
    tuned_as: str = ""
    """Row whose point it takes, where the federation below is that row's."""
    more_seeds: int = 0
    """Seeds beyond what the others get, where a verdict hangs on them."""

    def config(
        self,
        point: Settings,
        *,
        seed: int,
        rounds: int,
        evaluate_every: int,
        cohort: float,
        cooldown: float,
        validation: bool,
    ) -> Settings:
        """The run's flat configuration, without its catalogue and run id."""
        local: Settings = {"lr": 1.0, "local-steps": 1, "clip-norm": 5.0, "weighting": "examples", "optimizer": "sgd"}
        cooling: Settings = {} if self.method == "fedprox" else {"cooldown": cooldown}  # which has no server step
        algorithm: Settings = {**local, **cooling, **self.settings, **point}
        whole: Settings = {
            "method": self.method,
            "task": "sessions",
            "model": self.model,
            "seed": seed,
            "rounds": rounds,
            "evaluate-every": evaluate_every,
            "federation.min-clients": 1,
            "federation.cohort": cohort,
            "tasks.sessions.validation-share": VALIDATION_SHARE if validation else 0.0,
            "tasks.sessions.count-offset": self.counts,
        }
        whole |= {f"tasks.sessions.{key}": value for key, value in self.task.items()}
        return whole | {f"algorithm.{self.method}.{key}": value for key, value in algorithm.items()}


def steps(*etas: float) -> tuple[Settings, ...]:
    """A grid of server rates alone."""
    return tuple({"server-lr": eta} for eta in etas)


FINE: tuple[Settings, ...] = (
    {"server-lr": 0.01, "tau": 1e-4},
    {"server-lr": 0.02, "tau": 1e-4},
    {"server-lr": 0.04, "tau": 1e-4},
    {"server-lr": 0.03, "tau": 1e-3},
)
"""One grid for all adaptive methods. DRA enlarges the denominator, so it has to be wide; τ = 1e-3 is the papers'."""

COARSE: tuple[Settings, ...] = FINE[1:3]
"""For the set whose rounds are too few for a rate of .01; τ = 1e-3 lost for every method on the first."""

COOLING: tuple[Settings, ...] = FINE[:2]
"""For the set on which ηₛ falls towards the end, and .04 was seen to learn less."""

ABLATION: tuple[Settings, ...] = FINE[:3]

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("fedga", "FedGA, `saturated`", "fedga", (), more_seeds=2),
    Experiment("fedyogi", "FedYogi", "fedyogi", (), more_seeds=2),
    Experiment("fedadam", "FedAdam", "fedadam", ()),
    Experiment("default", "**default**: FedGA + own history", "fedga", (), model="default", tuned_as="fedga"),
    Experiment("default-counts", "default + summed rules", "fedga", (), model="default", counts=True, tuned_as="fedga"),
    Experiment("fedavg", "FedAvg", "fedavg", steps(1.0, 2.0)),
    Experiment("fedavgm", "FedAvgM, β .9", "fedavg", steps(0.3, 1.0), {"momentum": 0.9}),
    Experiment("fedprox", "FedProx, μ .01", "fedprox", ({},)),
    Experiment("csme", "C-SME `saturated` without DRA", "fedga", ABLATION, {"dra": False}),
    Experiment("fedadam-dra", "FedAdam + DRA", "fedga", ABLATION, {"second-moment": "adam"}),
    Experiment("fedyogi-dra", "FedYogi + DRA", "fedga", ABLATION, {"second-moment": "yogi"}),
    Experiment("fedga-ramp", "FedGA, `ramp`", "fedga", ABLATION, {"second-moment": "ramp"}),
    Experiment("fedga-quadratic", "FedGA, `quadratic`", "fedga", ABLATION, {"second-moment": "quadratic"}),
    Experiment("fedga-tagnn", "FedGA, `saturated`, TAGNN", "fedga", (), task={"network": "tagnn"}, tuned_as="fedga"),
)

MAIN = tuple(experiment.key for experiment in EXPERIMENTS[:8])
ABLATED = tuple(experiment.key for experiment in EXPERIMENTS[:-1])
WITH_TAGNN = (*MAIN, EXPERIMENTS[-1].key)
"""Rows of most sets; of the one with the ablation; and of the one with TAGNN, whose sessions are short enough for it."""
