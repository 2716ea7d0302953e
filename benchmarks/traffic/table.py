"""The results page as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from benchmarks.studies import markdown
from benchmarks.traffic.faults import Fault
from benchmarks.traffic.newcomers import Newcomers
from benchmarks.traffic.published import published
from benchmarks.traffic.sets import Setting
from benchmarks.traffic.study import Row

INTRODUCTION = """# Traffic forecasts: what the methods do on real sensors

{made_by}

120 hours in, 24 hours out, stride-1 windows; MSE in units of each client's own training deviation, mean over clients, filled
gaps left out. GRU of two stacked cells of width 16, batches of 64 windows. Step t of the horizon sees x[t+1 : t+97], which ends
with the same hour of yesterday, in the paper's model too, which has x[t : t+96] (.067 instead of .054 in an exploration); on
SUMO's streets it sees the whole history. Every method makes the same number of uploads,
each after 16 local steps; but FedSTL uploads twice a round, after 12 steps of its clients and 4 for its clusters (the default
after 16 and 2), so at equal uploads it has half the rounds and about half the steps of the others. The paper's model trains
with Adam at .01, one rate for all, taken from an exploration and not tuned here. *student*: the model a client holds, which
is the shared one as it came under FedAvg, FedProx and FedRep (with the client's own head), the client's own beside it under
Ditto, and the client's own last training result under IFCA and FedSTL; *cluster*: their shared model with the client's own
head, before the client's local steps; *teacher*: the student's forecasts moved to the closest ones that obey the client's
property, which then holds on all points and days by construction. ρ is the share of hours, of pairs of hours, or of whole
days, inside the property. **ρ alone is no quality**: any average of training days has 100 %, the truth itself has not, so the
truth's own ρ and the property's width (in standard deviations; SUMO's has one side and no width) head the tables of methods.
*ρ cluster* is of points. Wall times are of a shared machine, on which some runs stood still for minutes: they compare
nothing.

A row that is not there was not run. *Paper* is its Table 2, MSE and ρ in %, of students, clusters ("-S") and teachers, on
data that are not public in this form (FHWA 2019): for orientation. RNN, LSTM and transformer stand below with all seven
methods; a transformer's step is 18 GFLOP at a batch of 64 (two layers over 120 tokens) where a GRU's is .06, so it trains on
batches of 16 at Adam's .001 for 8 uploads.

At Boroondara and on SUMO's streets a round asks a tenth of the clients, drawn at random. Of Boroondara's 105, seeds 0 to 2,
3, 1 and 1 are never drawn in 40 rounds, 14, 9 and 14 in FedSTL's 20; of transformers' 8 rounds 45, 45 and 44, of FedSTL's 4
there 67, 66 and 66. They count, with private layers as the server made them; so private layers look worse there than they are
to a client that took part, and transformers at Boroondara say little of methods that have any."""


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
            parts += [f"### {title}", _table([_truth(ridge[kind]), *_lines(ridge[kind]), *map(_row, some)])]
    return "\n\n".join(parts)


def _truth(row: Row) -> list[str]:
    obeys = [row.cell(f"truth_rho_{part}", 3) for part in ("point", "window", "trace")]
    width = row.cell("property_width", 2)
    return [
        f"*the truth*; the property's width is {width}" if width else "*the truth*",
        "",
        "0",
        "",
        "0",
        *obeys,
        *[""] * 4,
    ]


def _lines(ridge: Row) -> Iterable[list[str]]:
    yield ["*line:* weekly profile", "", ridge.cell("profile_mse"), *[""] * 9]
    yield ["*line:* profile + own ridge", "", ridge.cell("ridge_mse"), *[""] * 9]
    yield ["*line:* profile + half own ridge, half everybody's", "", ridge.cell("joint_mse"), *[""] * 9]
    yield ["*line:* last week", "", ridge.cell("last_week_mse"), *[""] * 9]
    yield _ridge(ridge)


def _ridge(row: Row) -> list[str]:
    return [row.title, "", row.cell("mse"), "", row.cell("teacher_mse"), *_obeys(row), *[""] * 4]


def _row(row: Row) -> list[str]:
    errors = [row.cell("mse"), row.cell("cluster_mse"), row.cell("teacher_mse")]
    run = [row.cell("megabytes", 0), row.cell("seconds", 0), published(row.key)]
    return [row.title, str(len(row.seeds)), *errors, *_obeys(row), row.cell("cluster_rho_point", 3), *run]


def _obeys(row: Row) -> list[str]:
    return [row.cell(f"rho_{part}", 3) for part in ("point", "window", "trace")]


def streets(setting: Setting, rows: Sequence[Row], lines: Row) -> str:
    """The simulated streets: the lines, then every method; the last reading is the line to beat."""
    if not rows:
        return ""
    last = [["*line:* last reading", "", lines.cell("last_mse"), *[""] * 9]]
    paper, ours = ([row for row in rows if row.key.startswith("default") == is_ours] for is_ours in (False, True))
    methods = [[*_row(row)[:-1], ""] for row in (*paper, *ours)]  # the paper's Table 2 is of other data
    table = _table([_truth(lines), *last, _ridge(lines), *methods])
    return "\n\n".join([f"## {setting.title}", setting.about, table])


def other_networks(rows: Mapping[str, Sequence[Row]], ridge: Row) -> str:
    """The paper's model on its other networks, under the same lines and property."""
    head = [_truth(ridge), *_lines(ridge)]
    parts = [f"**{network}**\n\n{_table([*head, *map(_row, known)])}" for network, known in rows.items() if known]
    return "\n\n".join(["### The paper's model on other networks", *parts]) if parts else ""


def other_origins(setting: Setting, found: Sequence[Sequence[Row]], lines: Sequence[Row]) -> str:
    """MSE of the student at each origin: the same methods, cut and rates, the data ending earlier."""
    if not any(found[1:]):
        return ""
    titles = {row.key: row.title for rows in found for row in rows}
    named = [{row.key: fmean(seed["mse"] for seed in row.seeds.values()) for row in rows} for rows in found]
    columns = [
        {key: line.seeds["0"][key] for key in ("profile_mse", "ridge_mse", "joint_mse", "last_week_mse", "mse")}
        for line in lines
    ]
    drawn = {
        "profile_mse": "*line:* weekly profile",
        "ridge_mse": "*line:* profile + own ridge",
        "joint_mse": "*line:* profile + half own ridge, half everybody's",
        "last_week_mse": "*line:* last week",
        "mse": lines[0].title,
    }
    titles = drawn | titles
    header = ["method", *(f"{k * setting.back} days earlier" if k else "as above" for k in range(len(found))), "mean"]
    body = [
        _across(title, [{**a, **b}.get(key) for a, b in zip(named, columns, strict=True)])
        for key, title in titles.items()
    ]
    about = f"The data end {setting.back} days earlier from one column to the next; MSE of the student, first seed."
    return f"### Other origins\n\n{about}\n\n{markdown(header, body)}"


def new_sensors(rows: Sequence[Newcomers]) -> str:
    """The section on newcomers."""
    about = (
        "Sensors of which only the last days before the test are known. Share of the true test days, from every hour on, that"
        " obey their own property, and the weaker of it and the one pooled from the group of five to nine members whose ranges"
        " run closest to their readings; width in their own deviations."
    )
    header = ["property", "days", "newcomers", "own", "pooled", "width, own", "width, pooled"]
    body = [
        [one.title, f"{one.days}", f"{one.count}", f"{100 * one.own:.0f} %", f"{100 * one.pooled:.0f} %"]
        + [f"{width:.2f}" for width in (one.own_width, one.pooled_width)]
        for one in rows
    ]
    return f"### Newcomers\n\n{about}\n\n{markdown(header, body)}"


def broken_sensors(rows: Sequence[Fault]) -> str:
    """The section on faults."""
    about = (
        "One FedAvg GRU, seed 0; only the histories it reads are broken. MSE of the student, and after correction by each "
        "property with the change in per cent."
    )
    header = ["fault", "student", "paper's ranges", "hourly, working days and weekends", "the same, calibrated at 90 %"]
    body = [
        [
            one.title,
            f"{one.student:.4f}",
            *(f"{mse:.4f} ({-100 * one.cut(k):+.0f} %)" for k, mse in one.corrected.items()),
        ]
        for one in rows
    ]
    return f"### Broken sensors\n\n{about}\n\n{markdown(header, body)}"


def targets(said: Iterable[str]) -> str:
    """What was asked, and whether it is so."""
    return "\n".join(["### What these tables say of the targets", "", *(f"- {sentence}" for sentence in said)])


def _across(title: str, errors: Sequence[float | None]) -> list[str]:
    known = [error for error in errors if error is not None]
    cells = ["" if error is None else f"{error:.4f}" for error in errors]
    return [title, *cells, f"{fmean(known):.4f}" if len(known) == len(errors) else ""]


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Without the columns that are empty."""
    errors, obeys = ["MSE student", "cluster", "teacher"], ["ρ point", "ρ window", "ρ trace", "ρ cluster"]
    columns = zip(["method", "seeds", *errors, *obeys, "MB", "s a run", "paper"], *rows, strict=True)
    header, *body = zip(*(column for column in columns if any(column[1:])), strict=True)
    return markdown(header, body)
