"""Properties of all templates: forecasts with the property in the loss, and without."""

from collections.abc import Iterator
from dataclasses import replace

from studies.harness.experiment import Experiment, Settings
from studies.harness.results import Results
from studies.harness.row import in_order, mean_sd
from studies.harness.table import Table
from studies.traffic.experiments import CLAIMED_SEEDS, make_row
from studies.traffic.sets import SUMO, TEN, Setting

PROTOCOL = "templates"

DAYS = 92
"""Last days of the set that are used; inference takes minutes on a year."""

SITES = {
    "paper": "ranges (1)",
    "existence": "existence (2)",
    "until": "until (3)",
    "implication": "implication (5)",
    "eventualities": "eventualities (7)",
    "mined": "mined (8)",
}
"""Kind of property -> template, on the ten sites."""

STREETS = {"difference": "difference (4)", "nested": "nested implication (6)"}
"""The same for the two that need two variables, on the simulated streets."""

METRICS = {"mse": "MSE student", "teacher_mse": "teacher", "rho_point": "ρ point", "rho_trace": "ρ trace"}

ROUNDS = {"ten": 10, "sumo": 40}
"""Data set -> rounds; on the streets a client takes part in a tenth of them."""

ABOUT = f"""FedSTL without cluster steps on the paper's model, λ = 1 and λ = 0: {ROUNDS["ten"]} rounds on the last {DAYS} days
of the ten sites, and for templates 4 and 6, which compare two variables, {ROUNDS["sumo"]} rounds on streets that SUMO 1.28
simulated, with number of vehicles and occupancy. Each client infers its property from its own past. ρ is the share of
forecasts that satisfy it before the teacher; after it all do."""


def key_of(kind: str, weight: float) -> str:
    """Return the key of a kind's row with the property in the loss (1) or not (0)."""
    return f"{kind}-{weight:g}"


def _row(kind: str, title: str, weight: float, setting: Setting) -> Experiment:
    task: Settings = {**setting.task, "property": kind, "property-weight": weight}
    key, title = key_of(kind, weight), f"{title}, λ = {weight:g}"
    one = make_row(key, title, "fedstl", {"cluster-steps": 0}, task, uploads=ROUNDS[setting.key], seeds=CLAIMED_SEEDS)
    return replace(one, settings={**one.settings, "federation.cohort": setting.cohort}, protocol=PROTOCOL)


ROWS = {
    setting.key: tuple(_row(kind, title, weight, setting) for kind, title in kinds.items() for weight in (1.0, 0.0))
    for setting, kinds in ((TEN, SITES), (SUMO, STREETS))
}
"""Data set -> its rows."""


def section(results: Results) -> Iterator[str]:
    """Yield the section of the page; nothing before a row is measured."""
    table = Table(["data", "property", "seeds", *METRICS.values()])
    for name, experiments in ROWS.items():
        for row in in_order(results.rows_of(name, PROTOCOL), [one.key for one in experiments]).values():
            cells = [mean_sd(row.values(metric).values(), 3) for metric in METRICS]
            table.rows.append([name, row.title, str(len(row.trials)), *cells])
    if table.rows:
        yield f"## Templates\n\n{ABOUT}\n\n{table}"
