"""The results page as Markdown."""

import math
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.ratings import prose
from benchmarks.ratings.claims import (
    TARGETS,
    below_own_mean,
    default_verdict,
    duel,
    number,
    planner_verdict,
    unmoved,
)
from benchmarks.ratings.experiments import EXPERIMENTS, MECHANISMS, REWARD_SHARE, Experiment, Table
from benchmarks.ratings.lines import OWN
from benchmarks.ratings.published import TABLE_II, arriving, pure_epsilon, true_epsilon
from benchmarks.ratings.study import AUTHORS_ROUNDS, Row, Study

BY_KEY = {experiment.key: experiment for experiment in EXPERIMENTS}

COLUMNS = ("RMSE", "MAE", "F1", "best RMSE", "against own mean")


def page(studies: Sequence[Study], made_by: str) -> str:
    """The whole page; `made_by` says how and with what it was made."""
    parts = [prose.INTRODUCTION.format(made_by=made_by)]
    for study in studies:
        parts += _set(study)
    return "\n\n".join(parts) + "\n"


def _set(study: Study) -> Iterable[str]:
    yield f"## {study.setting.title}"
    yield (
        f"{study.clients:,} users, {study.empty} of them without a rating, who send noise like everybody else; "
        f"{study.items:,} films, {study.ratings:,} ratings, counted as {study.setting.scale}."
    )
    yield from _once(study)
    yield from _planned(study, "planned", prose.PLANNED.format(own=OWN))
    yield from _planned(study, "paper", prose.PAPER)
    yield from _accounting(study)
    if study.absent:
        yield f"**Not run yet** (keys as in `--only`; `authors-…` come without it): {', '.join(study.absent)}."
    if study.short:
        yield f"**Fewer splits than planned so far:** {', '.join(study.short)}."
    if study.failed:
        yield f"**Failed:** {'; '.join(study.failed)}."


def _once(study: Study) -> Iterable[str]:
    """The default model in one round, and whether it does what it has to."""
    lines = _lines_of(study, 0.0)
    rows = sorted(_rows_of(study, "once"), key=_order)
    yield prose.ONCE
    cells = [_cells(row, lines[OWN], _how(one), str(len(row.seeds))) for one, row in rows]
    yield _markdown(["method", "noise", "splits", *COLUMNS], [*_line_cells(lines, 2), *cells])
    default = study.rows.get("once-privunit-10")
    said = default_verdict(TARGETS[study.setting.key], default, lines[OWN]) if default else ["not run yet."]
    yield "**The default**: " + " ".join(said)
    yield below_own_mean({f"{row.title}, {_how(one)}": row for one, row in rows}, lines[OWN])


def _planned(study: Study, table: Table, about: str) -> Iterable[str]:
    """Planners, each against uniform under the same noise on the same splits."""
    lines = _lines_of(study, REWARD_SHARE)
    rows = sorted(_rows_of(study, table), key=_order)
    yield about
    cells = [
        [*_cells(row, lines[OWN], _how(one), *_done(row)), _against(_uniform_of(study, one), row)] for one, row in rows
    ]
    header = ["method", "noise", "splits", "rounds", *COLUMNS, "against uniform"]
    yield _markdown(header, [*([*line, ""] for line in _line_cells(lines, 3)), *cells])
    for one, row in rows:
        uniform = _uniform_of(study, one)
        if one.planner == "bgtplanner" and uniform is not None:
            yield f"**BGTplanner, {_how(one)}:** {planner_verdict(row, uniform)}"
    pairs = {_how(one): (row, _uniform_of(study, one)) for one, row in rows if one.planner == "adap"}
    if said := unmoved({how: (row, uniform) for how, (row, uniform) in pairs.items() if uniform}):
        yield said


def _accounting(study: Study) -> Iterable[str]:
    """Table II beside runs under its accounting and an honest one at what that costs."""
    mean, most = study.item_rows
    present, late = (_epsilons(*rows) for rows in ((mean, most), (_late(mean), _late(most))))
    yield prose.ACCOUNTING.format(mean=mean, most=most, present=present, late=late)
    lines = _lines_of(study, 0.0)
    rows = [[*line, ""] for line in _table_ii(study.setting.key)]
    for (planner, mechanism), row in study.authors.items():
        cost = pure_epsilon if mechanism == "laplace" else true_epsilon
        true = f"{MECHANISMS[mechanism]}, true ε = {cost(mean):,.0f}, arriving {cost(_late(mean)):,.0f}"
        uniform = study.authors.get(("uniform", mechanism)) if planner != "uniform" else None
        rows.append([*_cells(row, lines[OWN], true, *_done(row)), _against(uniform, row)])
    for one, row in _rows_of(study, "honest"):
        title = f"Gaussian, ε = {true_epsilon(mean):,.0f}"
        rows.append([*_cells(row, _lines_of(study, one.held_out)[OWN], title, *_done(row)), ""])
    for _, row in _rows_of(study, "long"):
        rows.append([*_cells(row, lines[OWN], "none", *_done(row)), ""])
    header = ["method", "noise", "splits", "rounds", *COLUMNS, "against uniform"]
    yield _markdown(header, [*([*line, ""] for line in _line_cells(lines, 3)), *rows])


def _epsilons(*rows: float) -> str:
    """`589 and 3,340`: what the authors' accounting really costs clients of so many item rows."""
    return " and ".join(f"{true_epsilon(one):,.0f}" for one in rows)


def _late(rows: float) -> float:
    """Item rows of a client of the harness, mean over its rounds."""
    return arriving(rows, AUTHORS_ROUNDS)


def _rows_of(study: Study, table: Table) -> list[tuple[Experiment, Row]]:
    return [(BY_KEY[key], row) for key, row in study.rows.items() if BY_KEY[key].table == table]


def _lines_of(study: Study, held_out: float) -> dict[str, Row]:
    return {row.key: row for row in study.lines[held_out]}


def _order(entry: tuple[Experiment, Row]) -> tuple[bool, int, float, bool]:
    """Without noise last; by mechanism, then ε."""
    one = entry[0]
    return not one.mechanism, [*MECHANISMS, ""].index(one.mechanism), one.epsilon, one.tuned


def _uniform_of(study: Study, one: Experiment) -> Row | None:
    key = one.key.replace(f"-{one.planner}-", "-uniform-", 1)
    return study.rows.get(key) if one.mechanism and key != one.key else None


def _against(uniform: Row | None, row: Row) -> str:
    found = duel(row, uniform) if uniform else None
    return found.text if found else ""


def _how(one: Experiment) -> str:
    return f"{MECHANISMS[one.mechanism]}, ε = {one.epsilon:g}" if one.mechanism else "none"


def _done(row: Row) -> tuple[str, str]:
    """Splits and rounds."""
    return str(len(row.seeds)), row.span


def _cells(row: Row, own: Row, *between: str) -> list[str]:
    best = number(row.best) if row.curves and not math.isnan(row.best) else ""
    found = duel(row, own)
    return [row.title, *between, *(_spread(row, m) for m in ("rmse", "mae", "f1")), best, found.text if found else ""]


def _line_cells(lines: Mapping[str, Row], between: int) -> Iterable[list[str]]:
    for row in lines.values():
        paired = duel(row, lines[OWN]) if "rmse" in next(iter(row.seeds.values())) and row.key != OWN else None
        errors = [_spread(row, metric) for metric in ("rmse", "mae", "f1")]
        yield [row.title, *[""] * between, *errors, "", paired.text if paired else ""]


def _table_ii(key: str) -> Iterable[list[str]]:
    for entry in TABLE_II[key]:
        for noise, (rmse, f1) in (("Gaussian", entry.gaussian), ("Laplace", entry.laplace)):
            if not math.isnan(rmse):
                how = "none" if "no noise" in entry.method else f'{noise}, "ε = 10"'
                yield [f"*Table II:* {entry.method}", how, "", "", "", "", number(f1), number(rmse), ""]


def _spread(row: Row, metric: str) -> str:
    if metric not in next(iter(row.seeds.values())):
        return ""
    spread = row.spread(metric)
    return number(row.mean(metric)) + (f" ± {number(spread)}" if spread else "")


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
