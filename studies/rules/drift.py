"""Drift laboratory: FedGNN and FedRule by local steps and by how much households differ."""

from dataclasses import replace
from itertools import product

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Home, Homes
from common.tasks.rules.vocabulary import demo_catalogue
from common.text import count
from studies.harness.experiment import Experiment, Settings
from studies.rules.curves import paper_settings
from studies.rules.experiments import BEHIND_SERVER, EQ3, LOCAL_SGD, RULE_BEHIND_SERVER

DRIFT = "drift"
SPECIALISATIONS, STEPS = (0.0, 0.5, 1.0, 2.0, 3.0), (1, 3, 12, 30)
ENDS = (0.0, 3.0)
"""Specialisations with several seeds."""

SEEDS, CLAIMED_SEEDS = 3, 12
"""Seeds of a row at an end, and of those that a claim names: five left AUC open, 11 were to decide."""

HOMES, LEAST_RULES = 800, 5
"""Generated homes, of which those with so many rules take part."""

BUSY, BUSY_HOMES, BUSY_RULES = "busy", 12_000, 20
"""Part of the name of sets of homes with more rules, and as above."""

ROUNDS = 30

DISSIMILARITY, DISSIMILARITY_ROUNDS = "dissimilarity", 10
"""Protocol and metric B² = mean ‖∇L_k‖² / ‖mean ∇L_k‖², and the round of its model.

The model is FedGNN's with `MANY` local steps.
"""

MANY = 12

COHORTS, COHORT_SPECIALISATION = (0.3, 0.1), 2.0
"""Shares of the homes a round, and the set on which they are compared."""

TWINS = "twins"
"""Data set of the homes that have two devices of a type."""

SGD: Settings = {"lr": 1.0, "clip-norm": 0.2}

METHODS = {"fedgnn": ("FedGNN", "fedavg", LOCAL_SGD), "fedrule": ("FedRule", "fedrule", EQ3)}
"""Part of a row's key -> name, method and options."""

SERVER = f"{MANY}-server"
SERVER_RATE: Settings = {"server-lr": 0.01}
"""End of the keys of rows behind a server Adam, and its rate."""

BEHIND = {"fedgnn": ("fedadam", BEHIND_SERVER), "fedrule": ("fedrule", RULE_BEHIND_SERVER)}
"""Part of a row's key -> method and options behind a server Adam."""


def drift_set(specialisation: float) -> str:
    """Return the short name of a set of homes."""
    return f"{DRIFT}-{specialisation:g}"


def busy_set(specialisation: float) -> str:
    """Return the short name of a set of homes with more rules."""
    return f"{BUSY}-{specialisation:g}"


def read_drift(specialisation: float, homes: int = HOMES, rules: int = LEAST_RULES) -> Homes:
    """Generate homes, and return those with enough rules."""
    found = demo_homes(0, homes, 0, specialisation)
    return Homes(tuple(home for home in found if len(home.rules) >= rules), demo_catalogue())


def read_twins() -> Homes:
    """Generate the homes with enough rules and two devices of a type."""
    homes = read_drift(1.0)
    return Homes(tuple(filter(has_twins, homes.units)), homes.vocabulary)


def has_twins(home: Home) -> bool:
    """Return True if two devices are of one type."""
    return len({device.entity for device in home.devices}) < len(home.devices)


def _row(name: str, steps: int) -> Experiment:
    title, method, options = METHODS[name]
    settings = paper_settings(method, ROUNDS, {**options, **SGD, "local-steps": steps})
    return Experiment(
        f"{name}-{steps}", f"{title}, {count(steps, 'local step')}", settings, seeds=SEEDS, protocol=DRIFT
    )


def _server_row(name: str) -> Experiment:
    method, options = BEHIND[name]
    settings = paper_settings(method, ROUNDS, {**options, **SERVER_RATE, "local-steps": MANY})
    title = f"{METHODS[name][0]}, {count(MANY, 'local step')}, server Adam"
    return Experiment(f"{name}-{SERVER}", title, settings, seeds=1, protocol=DRIFT)


def _cohort_row(name: str, cohort: float) -> Experiment:
    one = _row(name, MANY)
    settings = {**one.settings, "federation.cohort": cohort}
    return replace(one, key=f"{one.key}-cohort-{cohort:g}", title=f"{one.title}, cohort {cohort:g}", settings=settings)


EXPERIMENTS = tuple(_row(name, steps) for name, steps in product(METHODS, STEPS))

AT_MANY_STEPS = tuple(one for one in EXPERIMENTS if one.key.endswith(f"-{MANY}"))

BUSY_ROWS = tuple(replace(one, seeds=1) for one in AT_MANY_STEPS)

MEASURED_GRADIENTS = replace(
    AT_MANY_STEPS[0],
    settings={**AT_MANY_STEPS[0].settings, "rounds": DISSIMILARITY_ROUNDS},
    seeds=1,
    protocol=DISSIMILARITY,
)


def rows_of(specialisation: float) -> tuple[Experiment, ...]:
    """Return the rows on the homes of a specialisation."""
    seeds = SEEDS if specialisation in ENDS else 1
    grid = tuple(replace(one, seeds=seeds) for one in EXPERIMENTS)
    cohorts = tuple(replace(_cohort_row(name, cohort), seeds=1) for name, cohort in product(METHODS, COHORTS))
    return grid + tuple(map(_server_row, METHODS)) + (cohorts if specialisation == COHORT_SPECIALISATION else ())


SAME_TYPE = tuple(replace(one, seeds=CLAIMED_SEEDS) for one in AT_MANY_STEPS)
"""Rows on homes with twins."""
