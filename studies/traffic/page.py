"""Results page of the traffic study, made from stored results alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from studies.harness.claim import bullet_list
from studies.harness.experiment import Experiment
from studies.harness.results import Results
from studies.harness.row import NO_SEED, Row, RowKey, in_order, mean, mean_sd
from studies.harness.table import Table
from studies.traffic import prose, states_section, templates
from studies.traffic.claims import correction, verdicts
from studies.traffic.experiments import COLD_START_DAYS, DEFAULT, FAULTS, KINDS, NETWORKS, PAPER, RIDGE, ROLLING
from studies.traffic.figures import describe, faults_of
from studies.traffic.paper_figures import figures_of
from studies.traffic.pareto_figure import describe_pareto
from studies.traffic.sets import FHWA, SETTINGS, SUMO, Setting

FEDERATED = "*baseline:* profile + federated ridge"
BASELINES = {
    "profile_mse": "*baseline:* weekly profile",
    "ridge_mse": "*baseline:* profile + own ridge",
    "last_week_mse": "*baseline:* last week",
}
ADAPTIVE = "2026-11-27T11:15"
"""Time from which calibrated ranges follow violations."""

REPAIRED = "*baseline:* profile + own ridge on repaired histories"
PARTS = ("point", "window", "trace")
"""Lengths of which ρ is the share that satisfies the property."""

HEADER = (
    *("method", "seeds", "MSE student", "cluster", "teacher"),
    *("ρ point", "ρ window", "ρ trace", "ρ cluster", "MB", "s a run", "paper"),
)


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    yield prose.INTRODUCTION.format(made_by=made_by)
    if words := describe_pareto(results):
        yield f"{prose.PARETO}\n\n![MSE and share of hours that satisfy the property. {words}](assets/traffic-pareto.svg)"
    for setting in SETTINGS:
        if (rows := results.rows_of(setting.key, "origin-0")) and setting is not FHWA:
            yield from _streets(setting, rows) if setting is SUMO else _set(setting, rows, results)
    yield from templates.section(results)
    yield from states_section.section(results)


def _set(setting: Setting, rows: Mapping[str, Row], results: Results) -> Iterator[str]:
    yield f"## {setting.title}\n\n{setting.about}"
    calibrated, two_hourly = (_baselines(rows, kind) for kind in ("calibrated", "paper"))
    tables = (
        ("The paper's model, twelve two-hour ranges", PAPER, two_hourly),
        (
            "The default model, hourly ranges for working days and weekends, calibrated at 90 %",
            (RIDGE, *DEFAULT),
            calibrated,
        ),
    )
    for title, experiments, local in tables:
        if chosen := _of(rows, experiments):
            yield f"### {title}\n\n{_table(local, chosen)}"
            yield from _older(results, chosen, experiments)
    networks = {name: found for name, experiments in NETWORKS.items() if (found := _of(rows, experiments))}
    if networks:
        yield "### The paper's model on other networks"
        yield "\n\n".join(f"**{name}**\n\n{_table(two_hourly, chosen)}" for name, chosen in networks.items())
    yield from _origins(setting, results)
    cold, faults = results.rows_of(setting.key, "cold-start"), results.rows_of(setting.key, "faults")
    yield from _cold_start(cold)
    yield from _faults(setting.key, results)
    yield f"### Targets\n\n{bullet_list(verdicts(setting.key, rows, faults, cold))}"


def _streets(setting: Setting, rows: Mapping[str, Row]) -> Iterator[str]:
    """Return the section on simulated streets, whose strongest baseline is the last reading."""
    local = _baselines(rows, "difference")
    last = ["*baseline:* last reading", "", _cell(local, "last_mse"), *[""] * 9]
    methods = [
        [*_method(row)[:-1], ""] for row in _of(rows, (*PAPER, *DEFAULT))
    ]  # the paper's figures are of other data
    yield f"## {setting.title}\n\n{setting.about}"
    yield str(Table(HEADER, [_truth(local), last, _ridge(local), *methods]).without_empty_columns())


def _baselines(rows: Mapping[str, Row], kind: str) -> Row:
    """Return the baselines under a kind of property; an empty row if they were not measured."""
    return rows.get(f"baselines-{kind}") or Row(RowKey("", "", kind))


def _older(results: Results, rows: Sequence[Row], experiments: Sequence[Experiment]) -> Iterator[str]:
    """Name the rows of the default model that were trained before its ranges had adaptive margins."""
    if experiments[0] is RIDGE:
        found = [row.title for row in rows if results.days_before(ADAPTIVE, [row])]
        if found:
            yield f"Measured before {ADAPTIVE[:10]}, under the calibrated ranges of then: {'; '.join(found)}."


def _of(rows: Mapping[str, Row], experiments: Iterable[Experiment]) -> list[Row]:
    return list(in_order(rows, (one.key for one in experiments)).values())


def _table(local: Row, rows: Iterable[Row]) -> str:
    """Return the truth and the baselines, then methods."""
    baselines = [[title, "", _cell(local, metric), *[""] * 9] for metric, title in BASELINES.items()]
    table = Table(HEADER, [_truth(local), *baselines, _ridge(local), *map(_method, rows)])
    return str(table.without_empty_columns())


def _truth(local: Row) -> list[str]:
    width = _cell(local, "property_width", 2)
    title = f"*the truth*; the property's width is {width}" if width else "*the truth*"
    return [title, "", "0", "", "0", *(_cell(local, f"truth_rho_{part}", 3) for part in PARTS), *[""] * 4]


def _ridge(local: Row) -> list[str]:
    return [FEDERATED, "", _cell(local, "mse"), "", _cell(local, "teacher_mse"), *_property_cells(local), *[""] * 4]


def _method(row: Row) -> list[str]:
    errors = [_cell(row, metric) for metric in ("mse", "cluster_mse", "teacher_mse")]
    run = [mean_sd(values.values(), 0, shows_zero=False) for values in (row.about.megabytes, row.about.seconds)]
    end = [_cell(row, "cluster_rho_point", 3), *run, figures_of(row.key.row)]
    return [row.title, str(len(row.trials)), *errors, *_property_cells(row), *end]


def _property_cells(row: Row) -> list[str]:
    return [_cell(row, f"rho_{part}", 3) for part in PARTS]


def _cell(row: Row, metric: str, digits: int = 4) -> str:
    return mean_sd(row.values(metric).values(), digits, shows_zero=False)


def _origins(setting: Setting, results: Results) -> Iterator[str]:
    """Return the student's MSE at each origin on the first seed.

    Methods and rates are the same; the data end earlier.
    """
    found = [results.rows_of(setting.key, f"origin-{origin}") for origin in range(setting.origins)]
    if not any(found[1:]):
        return
    local = [_baselines(rows, "calibrated").values for rows in found]
    titles = {key: row.title for key, row in in_order(found[0], ROLLING).items()}
    errors = {title: [values(metric).get(NO_SEED) for values in local] for metric, title in BASELINES.items()}
    errors[FEDERATED] = [values("mse").get(NO_SEED) for values in local]
    repaired = [_baselines(rows, "repaired").values("ridge_mse").get(NO_SEED) for rows in found]
    errors |= {REPAIRED: repaired} if any(repaired) else {}
    errors |= {title: [_first(rows, key) for rows in found] for key, title in titles.items()}
    header = ["method", *(f"{k * setting.back} days earlier" if k else "as above" for k in range(len(found))), "mean"]
    about = f"The data end {setting.back} days earlier from one column to the next; MSE of the student, seed 0."
    about += " The closed form has no randomness."
    yield f"### Other origins\n\n{about}\n\n{Table(header, [_across(*entry) for entry in errors.items()])}"


def _first(rows: Mapping[str, Row], key: str) -> float | None:
    return rows[key].values("mse").get(0) if key in rows else None


def _across(title: str, errors: Sequence[float | None]) -> list[str]:
    measured = [error for error in errors if error is not None]
    cells = ["" if error is None else f"{error:.4f}" for error in errors]
    return [title, *cells, f"{mean(measured):.4f}" if len(measured) == len(errors) else ""]


def _cold_start(rows: Mapping[str, Row]) -> Iterator[str]:
    header = ["property", "days", "sensors", "own", "pooled", "width, own", "width, pooled"]
    table = Table(header)
    for kind, title in KINDS.items():
        for row in in_order(rows, (f"{kind}-{days}" for days in COLD_START_DAYS)).values():
            found = row.only
            shares = [f"{100 * found[name]:.0f} %" for name in ("own", "pooled")]
            widths = [f"{found[name]:.2f}" for name in ("own_width", "pooled_width")]
            table.rows.append([title, f"{found['days']:.0f}", f"{found['count']:.0f}", *shares, *widths])
    if table.rows:
        yield f"### Cold-start sensors\n\n{prose.COLD_START}\n\n{table}"


def _faults(setting: str, results: Results) -> Iterator[str]:
    rows, repaired = results.rows_of(setting, "faults"), faults_of(results, setting)
    kinds = {
        "paper": "paper's ranges",
        "weekday": "hourly, working days and weekends",
        "calibrated": "the same, calibrated at 90 %",
    }
    table = Table(["fault", "student", *kinds.values()])
    for row in in_order(rows, FAULTS).values():
        corrected = [f"{row.only[kind]:.4f} ({-100 * correction(row, kind):+.0f} %)" for kind in kinds]
        table.rows.append([row.title, f"{row.only['student']:.4f}", *corrected])
    if table.rows:
        yield f"### Broken sensors\n\n{prose.FAULTS}\n\n{table}"
    if repaired:
        tables = "\n\n".join(map(str, _repairs(list(repaired.values()))))
        yield f"{prose.REPAIR}\n\n![{describe(repaired)}](assets/traffic-faults-{setting}.svg)\n\n{tables}"


def _repairs(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the table of the GRU and that of profile and ridge."""
    repairs = {"_property": "by the property", "_z": "z rule", "_hampel": "Hampel", "_last_week": "by last week"}
    for name, title, more in (("student", "GRU", {"both": "and corrected"}), ("ridge", "profile + own ridge", {})):
        columns = {name: title, **{f"{name}{key}": words for key, words in repairs.items()}, **more}
        shown = [
            [row.title, *(f"{row.only[key]:.4f}" for key in columns), f"{row.only['flagged']:.1%}"] for row in rows
        ]
        yield Table(["fault", *columns.values(), "repaired readings"], shown)
