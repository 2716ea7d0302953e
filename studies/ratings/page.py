"""Results page of the ratings study, made from stored results alone."""

import math
from collections.abc import Iterable, Iterator, Sequence

from studies.harness.claim import bullet_list, compare
from studies.harness.results import Results
from studies.harness.row import Metrics, Row, RowKey, mean, mean_sd
from studies.harness.table import Table
from studies.ratings import prose
from studies.ratings.claims import (
    ERRORS,
    GAINS,
    below_own_mean,
    default_verdict,
    equal_to_uniform,
    helper_verdict,
    number,
    planner_verdict,
    short,
    span,
    text_of,
)
from studies.ratings.experiments import (
    AUTHORS,
    AUTHORS_ROUNDS,
    BASELINES,
    EXPERIMENTS,
    OWN,
    PLANNERS,
    REWARD_SHARE,
    WIDE,
    has_true_cost,
    held_out,
)
from studies.ratings.figures import describe
from studies.ratings.noise import MECHANISMS, epsilon_of_run, mechanism_of
from studies.ratings.paper_figures import TABLE_II, mean_rows, pure_epsilon, true_epsilon
from studies.ratings.planning import last_against_uniform, wide_verdict
from studies.ratings.planning_figure import describe_planning
from studies.ratings.sets import SETTINGS
from studies.ratings.stored_rows import StoredRows, noise_of

COLUMNS = ("RMSE", "MAE", "F1", "best RMSE", "against own mean")
HEADER = ("method", "noise", "splits", "rounds", *COLUMNS, "against uniform")


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    yield prose.INTRODUCTION.format(made_by=made_by)
    for setting in SETTINGS:
        if data := results.rows_of(setting.key, "all").get("data"):
            yield from _set(StoredRows(setting, results), data.only)


def _set(stored: StoredRows, sizes: Metrics) -> Iterator[str]:
    yield f"## {stored.setting.title}\n\n{prose.SIZES.format(scale=stored.setting.scale, **sizes)}"
    yield from _once(stored)
    yield from _planner_section(stored, "planned", prose.PLANNED.format(own=BASELINES[OWN]))
    yield from _planner_section(stored, "paper", prose.PAPER)
    if stored.rows("helped"):
        yield from _planner_section(stored, "helped", prose.HELPED)
    yield from _planning(stored)
    yield from _accounting(stored, sizes)
    yield from _missing_runs(stored)


def _once(stored: StoredRows) -> Iterator[str]:
    """Return the default model in one round, and whether it reaches its target."""
    own, rows = stored.own_mean(0.0), stored.rows("once")
    table = Table(["method", "noise", "splits", *COLUMNS], _baseline_cells(stored, 0.0, 2))
    table.rows += [_cells(row, own, noise_of(one), str(len(row.trials))) for one, row in rows]
    yield f"{prose.ONCE}\n\n{table}"
    if numbers := describe(stored.results, stored.setting.key):
        yield f"![{numbers}](assets/ratings-epsilon-{stored.setting.key}.svg)"
    default = stored.protocol("once").get("privunit-10")
    claims = default_verdict(stored.setting.target, default, own) if default else []
    yield "**The default**: " + (" ".join(map(str, claims)) or "not run yet.")
    if helped := helper_verdict(GAINS[stored.setting.key], stored.protocol("once"), own):
        yield f"**With two helpers**\n\n{bullet_list(map(str, helped))}"
    yield below_own_mean({f"{row.title}, {noise_of(one)}": row for one, row in rows}, own)


def _planner_section(stored: StoredRows, protocol: str, about: str) -> Iterator[str]:
    """Return planners, each against uniform under the same noise on the same splits."""
    own, rows = stored.own_mean(REWARD_SHARE), stored.rows(protocol)
    table = Table(HEADER, [[*cells, ""] for cells in _baseline_cells(stored, REWARD_SHARE, 3)])
    for one, row in rows:
        cells = _cells(row, own, noise_of(one), str(len(row.trials)), span(row))
        table.rows.append([*cells, _against(row, stored.uniform(one))])
    yield f"{about}\n\n{table}"
    pairs = [(one, row, uniform) for one, row in rows if (uniform := stored.uniform(one))]
    for one, row, uniform in pairs:
        if one.title == PLANNERS["bgtplanner"]:
            yield f"**BGTplanner, {noise_of(one)}:** {planner_verdict(one, row, uniform)}"
    adap = {noise_of(one): (row, uniform) for one, row, uniform in pairs if one.settings["method"] == "adap"}
    if sentence := equal_to_uniform(adap):
        yield sentence


def _planning(stored: StoredRows) -> Iterator[str]:
    """Return wide arms against their targets, and the regret of planners."""
    pairs = [
        (one, row, uniform)
        for protocol in ("paper", "planned")
        for one, row in stored.rows(protocol)
        if WIDE in one.key and (uniform := stored.uniform(one))
    ]
    if not pairs:
        return
    yield prose.PLANNING
    if numbers := describe_planning(stored.results, stored.setting.key):
        yield f"![Regret, {numbers}](assets/ratings-planning-{stored.setting.key}.svg)"
    for one, row, uniform in pairs:
        claims = wide_verdict(epsilon_of_run(one), row, uniform, stored.own_mean(REWARD_SHARE))
        model = "default model" if one.protocol == "planned" else "paper's model"
        sentences = [*map(str, claims), f"{span(row)} rounds.", last_against_uniform(row, uniform)]
        yield f"**Wide arms, {model}, {noise_of(one)}:** {' '.join(sentences)}"


def _accounting(stored: StoredRows, sizes: Metrics) -> Iterator[str]:
    """Return Table II, runs under its accounting, and an honest run at its true cost."""
    most, average = sizes["max_rows"], sizes["mean_rows"]
    present, late = (_epsilons(*rows) for rows in ((average, most), (_mean_rows(average), _mean_rows(most))))
    table = Table(
        HEADER, [[*cells, ""] for cells in [*_baseline_cells(stored, 0.0, 3), *_table_ii(stored.setting.key)]]
    )
    for key, row in ((key, row) for key in AUTHORS if (row := stored.protocol("authors").get(key))):
        cost = pure_epsilon if key.endswith("laplace") else true_epsilon
        true, late_cost = cost(average), cost(_mean_rows(average))
        noise = f"{MECHANISMS[mechanism_of(AUTHORS[key])]}, true ε = {true:,.0f}, arriving {late_cost:,.0f}"
        cells = _cells(row, stored.own_mean(0.0), noise, str(len(row.trials)), span(row))
        table.rows.append([*cells, _against(row, stored.uniform(AUTHORS[key]))])
    for one, row in (*stored.rows("honest"), *stored.rows("long")):
        noise = f"Gaussian, ε = {true_epsilon(average):,.0f}" if has_true_cost(one) else "none"
        own = stored.own_mean(held_out(one))
        table.rows.append([*_cells(row, own, noise, str(len(row.trials)), span(row)), ""])
    yield prose.ACCOUNTING.format(mean=average, most=most, present=present, late=late) + f"\n\n{table}"


def _missing_runs(stored: StoredRows) -> Iterator[str]:
    """State which rows are absent, lack splits or failed."""
    absent, lacking, failed = [], [], []
    for one in (*EXPERIMENTS, *AUTHORS.values()):
        name = f"{one.protocol}/{one.key}"
        row = stored.results.row(RowKey(stored.setting.key, one.protocol, one.key))
        failed += [f"{name}, split {seed}: {reason}" for seed, reason in row.about.failures.items()]
        if not row.trials and not row.about.failures:
            absent.append(name)
        elif len(row.trials) < one.seeds:
            lacking.append(f"{name} ({len(row.trials)} of {one.seeds})")
    if absent:
        yield f"**Not run yet:** {', '.join(absent)}."
    if lacking:
        yield f"**Fewer splits than planned so far:** {', '.join(lacking)}."
    if failed:
        yield f"**Failed:** {'; '.join(failed)}."


def _epsilons(*rows: float) -> str:
    """Return `589 and 3,340`: the true cost of the authors' accounting for clients of so many item rows."""
    return " and ".join(f"{true_epsilon(one):,.0f}" for one in rows)


def _mean_rows(rows: float) -> float:
    """Return the item rows of a client of the authors' scheme, mean over its rounds."""
    return mean_rows(rows, AUTHORS_ROUNDS)


def _against(row: Row, uniform: Row | None) -> str:
    found = compare(row, uniform, "rmse") if uniform else None
    return text_of(found) if found else ""


def _cells(row: Row, own: Row, *between: str) -> list[str]:
    lows = [min(found["rmse"] for found in trial.curve.values()) for trial in row.trials.values() if trial.curve]
    best = number(mean(lows)) if lows else ""
    return [row.title, *between, *_errors(row), best, _against(row, own)]


def _errors(row: Row) -> list[str]:
    return [short(mean_sd(row.values(metric).values(), 4, shows_zero=False)) for metric in ERRORS]


def _baseline_cells(stored: StoredRows, share: float, between: int) -> list[Sequence[str]]:
    own = stored.own_mean(share)
    return [
        [row.title, *[""] * between, *_errors(row), "", "" if key == OWN else _against(row, own)]
        for key, row in stored.baselines(share).items()
    ]


def _table_ii(key: str) -> Iterable[list[str]]:
    for entry in TABLE_II[key]:
        for noise, (rmse, f1) in (("Gaussian", entry.gaussian), ("Laplace", entry.laplace)):
            if not math.isnan(rmse):
                how = "none" if "no noise" in entry.method else f'{noise}, "ε = 10"'
                yield [f"*Table II:* {entry.method}", how, "", "", "", "", number(f1), number(rmse), ""]
