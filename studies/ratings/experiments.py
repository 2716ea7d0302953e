"""Rows of the ratings study: model, planner, noise and number of splits.

A protocol is a table of the page: `once`, `planned`, `paper`, `helped`, `honest`, `long` and `authors`.
"""

from dataclasses import replace

from studies.harness.experiment import Experiment, Settings, method_options
from studies.ratings.noise import HELPERS, MECHANISMS, noise_settings

TUNING_SEEDS = "100 to 109"
"""Splits on which the generic defaults were chosen; none of them is reported."""

ROUNDS = 20
"""T of the planners."""

STOPPED = 18
"""Rounds after which BGTplanner has spent its budget; an even split over as many is its control."""

LONG = 100
"""T of the paper's own run without noise."""

AUTHORS_ROUNDS, AUTHORS_SPLITS = 100, 3
"""T of the authors' own scheme, at ε = 10/T a round, and its number of splits."""

REWARD_SHARE = 0.1
"""Share of the training ratings held out for planners' rewards, which are thus not of test ratings."""

EPSILONS = (1.0, 5.0, 10.0, 20.0)

HELPED = (1.0, 2.0, 5.0, 8.0, 10.0, 20.0)
"""ε of one report with the noise of two helpers, on ten splits each."""

PLANNERS = {"uniform": "uniform (DPSGD)", "adpml": "ADPML", "adap": "ADAP", "bgtplanner": "**BGTplanner**"}
CONTROLS = {"random_arm": "random arms", "fedsgd": "FedSGD"}
AUTHORS_MECHANISMS = ("gaussian", "laplace")

WIDE = "-wide"
"""Part of the key of rows with wide arms."""

EARLY = (0.2, 0.4, 0.6)
"""T_min/T of the paper's grid; other rows have the last, .8."""

ADAM: Settings = {"lr": 0.5, "local-steps": 1, "server-lr": 0.05, "weighting": "uniform"}
"""Around the paper's model: one step a round, whose direction FedAdam follows at the authors' rate."""

MEAN_STEP: Settings = {"lr": 0.5, "local-steps": 1, "weighting": "uniform"}
"""Under helpers: the mean of one step of each client, scaled to the clip.

On split 100, under as much noise, it lowers the held-out RMSE in each of 100 rounds, from .303 to .218.
"""

OWN = "own-mean"
"""Baseline that every row is compared with."""

BASELINES = {
    "always-half": "always 0.5",
    "global-mean": "global mean (not private)",
    OWN: "user's own mean",
    "item-mean": "item mean (not private)",
    "biases": "user + item biases (not private)",
    "all-positive": "all positive",
}
"""Baselines: key -> title."""


def held_out(one: Experiment) -> float:
    """Return the share of the training ratings that planners are rewarded on."""
    return float(one.settings.get("tasks.ratings.validation-share", 0.0))


def uses_set_constants(one: Experiment) -> bool:
    """Return True if the set's own public constants replace the generic ones."""
    return one.key.endswith("-tuned")


def has_true_cost(one: Experiment) -> bool:
    """Return True if ε is the true cost of the authors' accounting for the set's mean number of ratings."""
    return one.protocol == "honest"


def baseline_protocol(share: float) -> str:
    """Return the protocol of the baselines that see the same training ratings."""
    return "rewards" if share else "all"


def _row(
    protocol: str, key: str, title: str, seeds: int, settings: Settings, mechanism: str = "", epsilon: float = 10.0
) -> Experiment:
    shared: Settings = {"task": "ratings", "federation.min-clients": 1, "federation.cohort": 1.0}
    whole = {**shared, **settings, **noise_settings(mechanism, epsilon)}
    return Experiment(key, title, whole, seeds=seeds, protocol=protocol)


def once(mechanism: str, epsilon: float, seeds: int, *, tuned: bool = False) -> Experiment:
    """Return the default model in one round, as `fedloom simulate --task ratings` runs it."""
    settings: Settings = {"method": "fedavg", "model": "default", "rounds": 1}
    key = f"{mechanism}-{epsilon:g}{'-tuned' if tuned else ''}" if mechanism else "none"
    title = f"default model{', constants of the set' if tuned else ''}"
    return _row("once", key, title, seeds, settings, mechanism, epsilon)


RIDGE = _row("once", "ridge", "closed form: item neighbours", 5, {"method": "ridge"})
"""Row of the closed form without noise, which has as many rounds as sums."""


def planner_row(planner: str, mechanism: str, seeds: int) -> Experiment:
    """Return the default model over T rounds at ε = 10."""
    settings: Settings = {
        "method": planner,
        "model": "default",
        "rounds": ROUNDS,
        "tasks.ratings.validation-share": REWARD_SHARE,
        "planner.inner": "fedavg",
    }
    return _row("planned", f"{planner}-{mechanism}", PLANNERS[planner], seeds, settings, mechanism)


def paper(
    planner: str, mechanism: str, seeds: int, *, epsilon: float = 10.0, std: float = 0.3, rounds: int = 0
) -> Experiment:
    """Return the paper's model over T rounds, or over fewer; `std` is that of first embeddings."""
    settings: Settings = {
        "method": planner,
        "model": "paper",
        "rounds": ROUNDS,
        "planner.inner": "fedadam",
        "tasks.ratings.validation-share": REWARD_SHARE,
        "tasks.ratings.embedding-std": std,
        **method_options("fedadam", ADAM),
    }
    settings = {**settings, **({"algorithm.uniform.rounds": rounds} if rounds else {})}
    key = f"{planner}{rounds or ''}-{mechanism}-{epsilon:g}" if mechanism else f"{planner}-none"
    key, title = key + ("" if std == 0.3 else f"-std{std:g}"), {**PLANNERS, **CONTROLS}[planner]
    title += (f", {rounds} rounds" if rounds else "") + ("" if std == 0.3 else f", first embeddings of sd {std:g}")
    return _row("paper", key, title, seeds, settings, mechanism, epsilon)


def helped(planner: str) -> Experiment:
    """Return the paper's model over the paper's T rounds, with noise of two helpers at ε = 10."""
    settings: Settings = {
        "method": planner,
        "model": "paper",
        "rounds": LONG,
        "planner.inner": "fedavg",
        "tasks.ratings.validation-share": REWARD_SHARE,
        "tasks.ratings.embedding-std": 0.3,
        **method_options("fedavg", MEAN_STEP),
        "privacy.normalise": True,
        "privacy.accept-noise": True,
    }
    return _row("helped", f"{planner}-{HELPERS}", PLANNERS[planner], 5, settings, HELPERS)


def wide(row: Experiment) -> Experiment:
    """Return a row of BGTplanner with wide arms, without contexts, which follow the noise."""
    settings: Settings = {"algorithm.bgtplanner.arms-kind": "wide", "algorithm.bgtplanner.context": 0}
    key = row.key.replace("bgtplanner", f"bgtplanner{WIDE}")
    return replace(row, key=key, title=f"{row.title}, wide arms", settings={**row.settings, **settings})


def early(row: Experiment, share: float) -> Experiment:
    """Return a row of BGTplanner with another T_min."""
    key, title = row.key.replace("bgtplanner", f"bgtplanner-t{share:g}"), f"{row.title}, T_min = {share * ROUNDS:g}"
    return replace(row, key=key, title=title, settings={**row.settings, "algorithm.bgtplanner.t-min": share})


def honest() -> Experiment:
    """Return the paper's model, every upload noised as one, at the true ε of the authors' accounting."""
    row = paper("uniform", "gaussian", 1)
    return Experiment("uniform", "uniform, honest accounting", row.settings, seeds=1, protocol="honest")


def long() -> Experiment:
    """Return the paper's protocol without noise: its rounds, its first embeddings, arriving ratings."""
    more: Settings = {
        "rounds": LONG,
        "evaluate-every": 10,
        "tasks.ratings.arrival": "online",
        "tasks.ratings.validation-share": 0.0,
    }
    settings = {**paper("fedsgd", "", 1, std=1.0).settings, **more}
    return Experiment("fedsgd", f"FedSGD, {LONG} rounds, arriving ratings", settings, seeds=1, protocol="long")


EXPERIMENTS: tuple[Experiment, ...] = (
    *(once(mechanism, 10.0, 10) for mechanism in MECHANISMS),
    once("privunit", 10.0, 10, tuned=True),
    once("", 0.0, 5),
    RIDGE,
    *(once(HELPERS, epsilon, 10) for epsilon in HELPED),
    *(once(mechanism, epsilon, 5) for mechanism in MECHANISMS for epsilon in EPSILONS if epsilon != 10),
    once("privunit", 2.0, 5),
    *(paper(planner, mechanism, 5) for mechanism in AUTHORS_MECHANISMS for planner in PLANNERS),
    *(planner_row(planner, mechanism, 5) for mechanism in AUTHORS_MECHANISMS for planner in PLANNERS),
    paper("fedsgd", "", 5),
    *(
        paper(planner, mechanism, 5, epsilon=epsilon)
        for epsilon in EPSILONS
        for mechanism in AUTHORS_MECHANISMS
        for planner in PLANNERS
        if epsilon != 10
    ),
    *(paper("random_arm", noise, 5, epsilon=most) for most in (1.0, 10.0) for noise in AUTHORS_MECHANISMS),
    *(paper("uniform", noise, 5, epsilon=most, rounds=STOPPED) for most in EPSILONS for noise in AUTHORS_MECHANISMS),
    *(wide(paper("bgtplanner", noise, 5, epsilon=most)) for most in (1.0, 10.0) for noise in AUTHORS_MECHANISMS),
    *(early(paper("bgtplanner", "gaussian", 5, epsilon=1.0), share) for share in EARLY),
    *(wide(planner_row("bgtplanner", noise, 5)) for noise in AUTHORS_MECHANISMS),
    *(helped(planner) for planner in PLANNERS),
    honest(),
    paper("uniform", "gaussian", 1, std=1.0),
    long(),
)
"""In the order of their value."""

AUTHORS = {
    f"{planner}-{mechanism}": Experiment(
        f"{planner}-{mechanism}",
        f"{PLANNERS[planner]}, the authors' own accounting",
        {"method": planner, "privacy.mechanism": mechanism},
        seeds=AUTHORS_SPLITS,
        protocol="authors",
    )
    for planner in PLANNERS
    for mechanism in AUTHORS_MECHANISMS
}
"""The authors' own scheme, which the product does not run: key -> row."""
