"""Properties of all templates on ten sites: forecasts with the property in the loss, and without."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from benchmarks.harness.experiment import Experiment, Settings
from benchmarks.harness.row import Row, in_order, mean_sd
from benchmarks.harness.table import Table
from benchmarks.traffic.experiments import make_row

PROTOCOL = "templates"

DAYS = 92
"""Last days of the set that are used; inference takes minutes on a year."""

TEMPLATES = {
    "paper": "ranges (1)",
    "existence": "existence (2)",
    "until": "until (3)",
    "eventualities": "eventualities (7)",
    "mined": "mined (8)",
}
"""Kind of property -> template; 4, 5 and 6 need two variables, which this set lacks."""

METRICS = {"mse": "MSE student", "teacher_mse": "teacher", "rho_point": "ρ point", "rho_trace": "ρ trace"}

UPLOADS = 10

ABOUT = f"""FedSTL without cluster steps on the paper's model, last {DAYS} days, {UPLOADS} rounds, one seed, λ = 1 and λ = 0.
Each client infers its property from its own past. ρ is the share of forecasts that satisfy it before the teacher; after
it all do."""


def key_of(kind: str, weight: float) -> str:
    """Return the key of a kind's row with the property in the loss (1) or not (0)."""
    return f"{kind}-{weight:g}"


def _row(kind: str, title: str, weight: float) -> Experiment:
    task: Settings = {"property": kind, "property-weight": weight}
    key, title = key_of(kind, weight), f"{title}, λ = {weight:g}"
    return replace(
        make_row(key, title, "fedstl", {"cluster-steps": 0}, task, uploads=UPLOADS, seeds=1), protocol=PROTOCOL
    )


ROWS = tuple(_row(kind, title, weight) for kind, title in TEMPLATES.items() for weight in (1.0, 0.0))


def section(rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield the section of the page; nothing before a row is measured."""
    found = in_order(rows, [one.key for one in ROWS])
    if not found:
        return
    table = Table(["property", "seeds", *METRICS.values()])
    for row in found.values():
        cells = [mean_sd(row.values(name).values(), 3) for name in METRICS]
        table.rows.append([row.title, str(len(row.trials)), *cells])
    yield f"### Templates\n\n{ABOUT}\n\n{table}"
