"""Section of the sessions page on rules summed over clients."""

from collections.abc import Iterator

from studies.harness.claim import Comparison, compare
from studies.harness.results import Results
from studies.harness.row import mean
from studies.harness.table import Table
from studies.sessions import prose
from studies.sessions.experiments import SUMMED
from studies.sessions.sets import SETTINGS, SMALL_SETTINGS, Setting


def section(results: Results) -> Iterator[str]:
    """Yield the section; nothing without rows."""
    table = Table(
        ["set", "items", "clients", "rounds", "seeds", "HR@20 without", "with", "difference by seed, points", "mean"]
    )
    for setting in (*SETTINGS, *SMALL_SETTINGS):
        rows = results.rows_of(setting.key)
        if rows.keys() >= {*SUMMED, "data"}:
            without, summed = (rows[key] for key in SUMMED)
            if found := compare(summed, without, "hr20", higher_is_better=True):
                sizes = [f"{rows['data'].only[name]:,.0f}" for name in ("items", "clients")]
                table.rows.append([setting.key, *sizes, *_cells(setting, found)])
    if table.rows:
        yield f"## Summed rules\n\n{prose.SUMMED}\n\n{table}"
        if absent := [setting.key for setting in SMALL_SETTINGS if not results.rows_of(setting.key)]:
            yield f"Not run yet: {', '.join(absent)}."


def _cells(setting: Setting, found: Comparison) -> list[str]:
    hits = [f"{100 * mean(values):.1f}" for values in (found.second, found.first)]
    differences = ", ".join(f"{100 * difference:+.2f}" for difference in found.differences)
    return [str(setting.rounds), str(found.seeds), *hits, differences, f"{100 * found.mean:+.2f}"]
