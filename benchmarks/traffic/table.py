"""The results page as Markdown."""

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.traffic.sets import Setting
from benchmarks.traffic.study import Row

INTRODUCTION = """# Traffic forecasts: what the methods do on real sensors

{made_by}

120 hours in, 24 hours out, stride-1 windows; MSE in units of each client's own training deviation, mean over clients, filled
gaps left out. GRU of two stacked cells of width 16, batches of 64 windows. Every method makes the same number of uploads, each
after 16 local steps (FedSTL uploads twice a round, so it has half the rounds). The paper's model trains with Adam at .01, one
rate for all, taken from an exploration and not tuned here. *student*: the model a client holds; *cluster*: the shared model
with the client's own head, before the client's local steps; *teacher*: the student's forecasts moved to the closest ones that
obey the client's property, which then holds on all points and days by construction. ρ is the share of hours, or of whole
days, inside the property. **ρ alone is no quality**: any average of training days has 100 %, the truth itself has not, so the
truth's own ρ and the property's width (in standard deviations) stand above every table. Wall times are of a shared machine,
on which some runs stood still for minutes: they compare nothing.

Not run here: RNN, LSTM and Transformer (they train, see the tests, but a Transformer's step costs some fifty times a GRU's),
rolling origins, SUMO. The paper's Table 2 is on data that are not public in this form (FHWA 2019); for orientation, GRU, MSE
and ρ in %: FedAvg .154 / 80.5, FedProx .153 / 80.4, FedRep .279 / 80.1, Ditto .153 / 80.4, IFCA .140 / 77.5, FedSTL .152 /
81.8, its teacher .118 / 100."""


def page(made_by: str, sections: Sequence[str]) -> str:
    """The whole page."""
    return "\n\n".join([INTRODUCTION.format(made_by=made_by), *sections]) + "\n"


def section(setting: Setting, rows: Sequence[Row], ridge: Mapping[str, Row]) -> str:
    """One data set: the lines, the paper's model under its property, the default under the calibrated one."""
    parts = [f"## {setting.title}", setting.about]
    paper = [row for row in rows if not row.key.startswith("default")]
    ours = [row for row in rows if row.key.startswith("default")]
    for title, some, kind in (
        ("The paper's model, twelve two-hour ranges", paper, "paper"),
        ("The default model, hourly ranges for working days and weekends, calibrated at 90 %", ours, "calibrated"),
    ):
        if some:
            parts += [f"### {title}", _truth(ridge[kind]), _table([*_lines(ridge[kind]), *map(_row, some)])]
    return "\n\n".join(parts)


def _truth(row: Row) -> str:
    return (
        f"The truth obeys the property on {row.cell('truth_rho_point', 3)} of the readings and "
        f"{row.cell('truth_rho_trace', 3)} of the days; its width is {row.cell('property_width', 2)}."
    )


def _lines(ridge: Row) -> Iterable[list[str]]:
    yield ["*line:* weekly profile", "", ridge.cell("profile_mse"), *[""] * 6]
    yield ["*line:* last week", "", ridge.cell("last_week_mse"), *[""] * 6]
    yield [ridge.title, "", ridge.cell("mse"), "", ridge.cell("teacher_mse"), *_obeys(ridge), "", ""]


def _row(row: Row) -> list[str]:
    errors = [row.cell("mse"), row.cell("cluster_mse"), row.cell("teacher_mse")]
    return [row.title, str(len(row.seeds)), *errors, *_obeys(row), row.cell("megabytes", 0), row.cell("seconds", 0)]


def _obeys(row: Row) -> list[str]:
    return [row.cell("rho_point", 3), row.cell("rho_trace", 3)]


def _table(rows: Iterable[Sequence[str]]) -> str:
    header = ["method", "seeds", "MSE student", "cluster", "teacher", "ρ point", "ρ trace", "MB", "s a run"]
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def broken_sensors(rows: Sequence[Sequence[str]]) -> str:
    """The section on faults."""
    about = (
        "One FedAvg GRU, seed 0; only the histories it reads are broken. MSE of the student, and after correction by each "
        "property with the change in per cent."
    )
    header = ["fault", "student", "paper's ranges", "hourly, working days and weekends", "the same, calibrated at 90 %"]
    lines = [header, ["---"] * len(header), *rows]
    return f"### Broken sensors\n\n{about}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)
