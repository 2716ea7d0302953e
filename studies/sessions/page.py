"""Results page of the sessions study, made from stored results alone."""

from collections.abc import Iterator, Mapping

from studies.harness.claim import compare
from studies.harness.experiment import label
from studies.harness.results import Results
from studies.harness.row import Row, in_order, mean, mean_sd
from studies.harness.table import Table
from studies.sessions import (
    clicked_items,
    denominators,
    figures,
    long_runs,
    prose,
    sensitivity,
    softmax_section,
)
from studies.sessions.experiments import CENTRAL, EQUAL_BYTES, SAMPLED, TITLES
from studies.sessions.paper_figures import EPOCHS, PUBLISHED, WHOLE
from studies.sessions.sets import SETTINGS, Setting

METRICS = {"hr10": "HR@10", "hr20": "HR@20", "mrr10": "MRR@10", "mrr20": "MRR@20", "ndcg20": "NDCG@20"}
NEAR = 0.95
"""Share of the final HR@20 at which rounds and megabytes are counted."""

OPTIMIZERS = ("fedavg", "fedavgm", "fedprox", "fedgate", "fedadam", "fedyogi", "csme")
"""Rows that FedGA is compared with."""


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    yield prose.INTRODUCTION.format(made_by=made_by)
    yield from figures.section(results)
    for setting in SETTINGS:
        measured = results.rows_of(setting.key)
        if "data" in measured and in_order(measured, TITLES):
            yield from _set(setting, measured)
    for part in (sensitivity, denominators, clicked_items, long_runs):
        yield from part.section(results)
    yield from softmax_section.section(results)
    yield from _check(results)


def _set(setting: Setting, measured: Mapping[str, Row]) -> Iterator[str]:
    rows, sizes = in_order(measured, TITLES), measured["data"].only
    cooldown = f"; ηₛ falls to zero over the last {setting.cooldown:.0%} of them" if setting.cooldown else ""
    yield f"## {setting.title}"
    yield prose.SETUP.format(setting=setting, cooldown=cooldown, **sizes)
    header = ["method", "chosen", "seeds", *METRICS.values(), "rounds to 95 %", "MB to 95 %", "s a run"]
    yield str(Table(header, [_method_cells(row, setting) for row in rows.values()]))
    wanted = [one.key for one in setting.experiments()]
    if absent := [TITLES[key] for key in wanted if key not in rows]:
        yield f"Not run yet: {', '.join(absent)}."
    yield from _shares(rows)
    yield from _comparisons(rows)
    beside = in_order(measured, [one.key for one in (*SAMPLED, EQUAL_BYTES)])
    tuned = [[row.title, _grid(row)] for row in (rows | beside).values() if row.about.grid]
    yield f"### Tuning\n\n{Table(['method', 'validation HR@20 by point'], tuned)}"
    yield "Methods without a row here take FedGA's point."


def _method_cells(row: Row, setting: Setting) -> list[str]:
    given = setting.points.get(row.key.row)
    untuned = f"{label(given)} (of 1/64)" if given else "not tuned" if row.about.megabytes else ""
    chosen = str(row.about.chosen.get("point", untuned))
    rounds = rounds_to(row, NEAR)
    traffic = rounds * mean(row.about.megabytes.values()) / setting.rounds if rounds else 0.0
    cells = [mean_sd(row.values(metric).values(), 1, scale=100) for metric in METRICS]
    seconds = "" if row.title.startswith("*baseline:*") else f"{mean(row.about.seconds.values()):.0f}"
    reached = [f"{rounds:.0f}", f"{traffic:.0f}"] if rounds else ["", ""]
    return [row.title, chosen, str(len(row.trials)), *cells, *reached, seconds]


def rounds_to(row: Row, share: float) -> float:
    """Return the first evaluated round with that share of the final HR@20, mean over seeds.

    It is 0 without curves.
    """
    firsts = [
        min(number for number, metrics in trial.curve.items() if metrics["hr20"] >= share * trial.metrics["hr20"])
        for trial in row.trials.values()
        if trial.curve
    ]
    return mean(firsts) if firsts else 0.0


def _shares(rows: Mapping[str, Row]) -> Iterator[str]:
    """State the share of the central network's HR@20 that the adaptive methods reach."""
    if {CENTRAL.key, "fedga"} <= rows.keys():
        best = rows[CENTRAL.key].mean("hr20")
        adaptive = in_order(rows, ("fedga", "fedyogi", "fedadam")).values()
        shares = [f"{row.title} {row.mean('hr20') / best:.1%}" for row in adaptive]
        yield f"Share of the central network's HR@20 ({100 * best:.1f}): {', '.join(shares)}."


def _comparisons(rows: Mapping[str, Row]) -> Iterator[str]:
    """Compare FedGA with every other server optimizer, paired by seed."""
    if "fedga" in rows:
        table = Table(["against", "HR@20, points", "seeds better", "rounds to 95 %"])
        for row in in_order(rows, OPTIMIZERS).values():
            if found := compare(rows["fedga"], row, "hr20", higher_is_better=True):
                rounds = f"{rounds_to(rows['fedga'], NEAR):.0f} against {rounds_to(row, NEAR):.0f}"
                table.rows.append([row.title, f"{100 * found.mean:+.1f}", f"{found.won} of {found.seeds}", rounds])
        yield f"### FedGA (`saturated`) against other server optimizers, paired by seed\n\n{table}"


def _grid(row: Row) -> str:
    return "; ".join(
        f"{point}: {100 * best['hr20']:.1f}" if best else f"{point}: does not train"
        for point, best in row.about.grid.items()
    )


def _check(results: Results) -> Iterator[str]:
    """Compare our SR-GNN, trained centrally on whole sets, with its authors' figures."""
    table = Table(["set", "test cases", "epochs", "HR@20", "published", "MRR@20", "published"])
    for name, (hr, mrr, cases) in PUBLISHED.items():
        if row := results.rows_of(name, WHOLE).get(CENTRAL.key):
            found = row.only
            ranked = f"{found['cases']:,.0f} ({found['cases'] / cases:.1%} of theirs)"
            ours = f"{100 * found['hr20']:.2f}", f"{100 * hr:.2f}", f"{100 * found['mrr20']:.2f}", f"{100 * mrr:.2f}"
            table.rows.append([name, ranked, str(EPOCHS), *ours])
    if table.rows:
        yield f"## Check of the model\n\n{prose.CHECK}\n\n{table}"
