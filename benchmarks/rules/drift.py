"""Drift laboratory: FedGNN and FedRule by local steps and by how much households differ."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from benchmarks.harness.claim import compare
from benchmarks.harness.experiment import Experiment, Settings
from benchmarks.harness.results import Results
from benchmarks.harness.row import Row, in_order, mean_sd
from benchmarks.harness.table import Table
from benchmarks.rules import prose
from benchmarks.rules.curves import RISE, paper_settings
from benchmarks.rules.experiments import EQ3, LOCAL_SGD
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Home, Homes
from common.tasks.rules.demo import demo_catalogue
from common.text import count

DRIFT = "drift"
SPECIALISATIONS, STEPS = (0.0, 3.0), (1, 12, 30)
SEEDS, CLAIMED_SEEDS = 3, 12
"""Seeds of a row, and of those that a claim names: five left AUC open, 11 were to decide."""

HOMES, LEAST_RULES = 800, 5
"""Generated homes, of which those with so many rules take part."""

ROUNDS = 30

TWINS = "twins"
"""Data set of the homes that have two devices of a type."""

METRICS = ("loss", "auc", "mr0")

SGD: Settings = {"lr": 1.0, "clip-norm": 0.2}

METHODS = {"fedgnn": ("FedGNN", "fedavg", LOCAL_SGD), "fedrule": ("FedRule", "fedrule", EQ3)}
"""Part of a row's key -> name, method and options."""


def drift_set(specialisation: float) -> str:
    """Return the short name of a set of homes."""
    return f"{DRIFT}-{specialisation:g}"


def read_drift(specialisation: float) -> Homes:
    """Generate the homes with enough rules."""
    homes = demo_homes(0, HOMES, 0, specialisation)
    return Homes(tuple(home for home in homes if len(home.rules) >= LEAST_RULES), demo_catalogue())


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


EXPERIMENTS = tuple(_row(name, steps) for name, steps in product(METHODS, STEPS))

SAME_TYPE = tuple(replace(one, seeds=CLAIMED_SEEDS) for one in EXPERIMENTS if one.key.endswith("-12"))
"""Rows on homes with twins."""


def section(results: Results) -> Iterator[str]:
    """Yield the tables of the laboratory and of homes with twins; nothing without rows."""
    ends = [f"{metric}, {title}" for metric in ("loss", "rise", "MR") for title, *_ in METHODS.values()]
    table = Table(["specialisation", "steps", "seeds", *ends, "MR, FedRule − FedGNN"])
    for specialisation, steps in product(SPECIALISATIONS, STEPS):
        rows = results.rows_of(drift_set(specialisation), DRIFT)
        pair = [rows[key] for name in METHODS if (key := f"{name}-{steps}") in rows]
        if len(pair) == len(METHODS):
            table.rows.append([f"{specialisation:g}", str(steps), *_cells(*pair)])
    if table.rows:
        about = prose.DRIFT.format(homes=HOMES, least=LEAST_RULES, rounds=ROUNDS, rate=SGD["lr"], clip=SGD["clip-norm"])
        yield f"{about}\n\n{table}"
    twins = in_order(results.rows_of(TWINS, DRIFT), (one.key for one in SAME_TYPE)).values()
    if twins:
        cells = [[row.title, str(len(row.trials)), *(_text(row, metric) for metric in METRICS)] for row in twins]
        yield f"{prose.TWINS}\n\n{Table(['method', 'seeds', 'loss', 'AUC', 'MR'], cells)}"


def _cells(first: Row, second: Row) -> list[str]:
    found = compare(second, first, "mr0")
    values = [_text(row, metric) for metric in ("loss", RISE, "mr0") for row in (first, second)]
    return [str(found.seeds if found else 0), *values, found.text(2) if found else ""]


def _text(row: Row, metric: str) -> str:
    return mean_sd(row.values(metric).values(), 2 if metric == "mr0" else 3)
