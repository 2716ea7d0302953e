"""Test loss by round of GraphRule, FedGNN and FedRule: divergence, and the paper's letter."""

from studies.harness.experiment import Experiment, Settings, method_options
from studies.rules.experiments import EQ3, GRAD_MEAN, LOCAL_SGD, LOCAL_STEPS, PERSIST, RESET

CURVES: str = "curves"
SET = "A"
ROUNDS, EVERY, SEEDS = 100, 5, 5
CLAIMED_SEEDS = 10
"""Seeds of the two rows of SGD, of which a claim is undecided with five."""
MEASURED = ("loss", "auc", "mr0")
RISE = "rise"
"""Metric of divergence: (last test loss − least test loss of any round) / least."""

SGD: Settings = {"lr": 10.0, "clip-norm": 0.2}
ADAM: Settings = {"lr": 0.003}
LETTER: Settings = {"lr": 0.1}
"""Points: those tuned for both methods on the page's set-up A, and the paper's rate of local Adam."""


def paper_settings(method: str, rounds: int, options: Settings) -> Settings:
    """Return the settings of the paper's model with a test loss every few rounds."""
    return {
        "method": method,
        "model": "paper",
        "rounds": rounds,
        "evaluate-every": EVERY,
        "federation.min-clients": 1,
        "tasks.rules.negatives": 1,
        **method_options(method, options),
    }


def _row(key: str, title: str, method: str, options: Settings, *, central: bool = False) -> Experiment:
    settings = paper_settings(method, ROUNDS, {"local-steps": LOCAL_STEPS, **options})
    seeds = CLAIMED_SEEDS if key in ("fedrule-sgd", "fedgnn-sgd") else SEEDS
    return Experiment(key, title, settings, seeds=seeds, protocol=CURVES, central=central)


EXPERIMENTS = (
    _row("fedrule-sgd", "FedRule, SGD, Eq 3", "fedrule", {**EQ3, **SGD}),
    _row("fedgnn-sgd", "FedGNN, SGD", "fedavg", {**LOCAL_SGD, **SGD}),
    _row("graphrule-sgd", "GraphRule (central), SGD", "fedavg", {**LOCAL_SGD, **SGD}, central=True),
    _row(
        "fedrule-letter",
        "FedRule, the paper's letter: Adam at .1 in Eq 3",
        "fedrule",
        {**RESET, "control": "adam_literal", **LETTER},
    ),
    _row("fedgnn-letter", "FedGNN, Adam at .1", "fedavg", {**RESET, **LETTER}),
    _row("fedrule-adam", "FedRule, local Adam, `grad_mean`", "fedrule", {**GRAD_MEAN, **ADAM}),
    _row("fedgnn-adam", "FedGNN, local Adam, moments persist", "fedavg", {**PERSIST, **ADAM}),
)

PANELS = {
    "SGD": ("graphrule-sgd", "fedgnn-sgd", "fedrule-sgd"),
    "local Adam": ("fedgnn-adam", "fedrule-adam"),
    "Adam at .1 in Eq 3": ("fedgnn-letter", "fedrule-letter"),
}
"""Panel of the figure -> its rows."""
