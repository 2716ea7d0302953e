"""Generated homes in closed form: rows, and their section of the rules page."""

from collections.abc import Iterator

from studies.harness.claim import Claim, bullet_list
from studies.harness.experiment import Experiment
from studies.harness.results import Results
from studies.harness.row import Row, in_order, mean_sd
from studies.harness.table import Table
from studies.rules.experiments import EXPERIMENTS

HOMES = (800, 4_000)
"""Numbers of homes, the first ones of the task's generated data."""

KEYS = ("ridge", "ridge-summed", "ridge-8", "ridge-2", "ridge-1")
"""Rows: the closed form in plaintext, in sums of two helpers, and with their noise at ε."""

TARGETS = {"ridge": 0.66, "ridge-8": 0.56, "ridge-2": 0.54, "ridge-1": 0.50}
"""HR@20 that the rows of the largest set have to reach."""

FLOOR, FLOOR_TITLE = "hr20_popularity", "*baseline:* popularity of triples"
"""Metric that stands in a run in plaintext, and its name."""

ABOUT = """## Generated homes

The closed form on the first {homes} homes that the demo generates, with the product's own options. The homes are the same for
all seeds, and seeds decide their splits. HR@N ranks every rule that could be added, and means are over homes with a test rule.
*Shown*: rules within the abilities of devices, as `fedloom recommend` lists them. Popularity is that of the run in plaintext.
MB are sent and received by all homes. δ is 1e-5."""


def set_name(homes: int) -> str:
    """Return the short name of a set of homes."""
    return f"homes-{homes}"


def experiments() -> list[Experiment]:
    """Return the rows."""
    return [one for one in EXPERIMENTS if one.key in KEYS]


def section(results: Results) -> Iterator[str]:
    """Yield the section; nothing before a row is measured."""
    table = Table(["homes", "method", "seeds", "HR@5", "HR@10", "HR@20", "HR@20 shown", "MR", "MB", "s a run"])
    for homes in HOMES:
        rows = in_order(results.rows_of(set_name(homes)), KEYS)
        if "ridge" in rows:
            found = rows["ridge"]
            cells = [mean_sd(found.values(metric).values(), 3) for metric in (FLOOR, "hr20_shown_popularity")]
            table.rows.append([f"{homes:,}", FLOOR_TITLE, str(len(found.trials)), "", "", *cells, "", "", ""])
        table.rows.extend([f"{homes:,}", *_cells(row)] for row in rows.values())
    if table.rows:
        yield f"{ABOUT.format(homes=' and '.join(f'{homes:,}' for homes in HOMES))}\n\n{table}"
        yield bullet_list(map(str, claims(results)))


def claims(results: Results) -> Iterator[Claim]:
    """Yield the targets of the largest set, and the gains over popularity of each."""
    for homes in HOMES:
        rows = results.rows_of(set_name(homes))
        if "ridge" in rows:
            gains = rows["ridge"].mean("hr20") - rows["ridge"].mean(FLOOR)
            yield Claim(f"{homes:,} homes: the closed form is above popularity ({gains:+.3f} HR@20)", gains > 0)
        for key, least in TARGETS.items() if homes == HOMES[-1] else ():
            if key in rows:
                reached = rows[key].mean("hr20")
                text = f"{homes:,} homes, {rows[key].title}: HR@20 at least {least:g} ({reached:.3f})"
                yield Claim(text, reached >= least)


def _cells(row: Row) -> list[str]:
    metrics = [mean_sd(row.values(name).values(), 3) for name in ("hr5", "hr10", "hr20", "hr20_shown")]
    costs = [mean_sd(values.values(), 0, shows_zero=False) for values in (row.about.megabytes, row.about.seconds)]
    return [row.title, str(len(row.trials)), *metrics, mean_sd(row.values("mr0").values(), 2), *costs]
