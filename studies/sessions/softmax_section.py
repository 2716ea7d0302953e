"""Section of the sessions page on sampled softmax: its accuracy beside the full one, and its cost."""

import json
from collections.abc import Iterator
from pathlib import Path

from studies.harness.results import Results
from studies.harness.row import Row, mean
from studies.harness.study import RESULTS
from studies.harness.table import Table
from studies.sessions import prose
from studies.sessions.experiments import EQUAL_BYTES, SAMPLED
from studies.sessions.sets import SETTINGS

COST = RESULTS / "sampled_softmax.json"
"""Results of `python -m studies speed sampled_softmax`."""


COLUMNS = (
    "set",
    "method",
    "at equal",
    "rounds, full",
    "rounds, sampled",
    "MB up, full",
    "MB up, sampled",
    "point, full",
    "point, sampled",
    "HR@20, full",
    "HR@20, sampled",
    "difference by seed, points",
)


PAIRS = (
    *((one.key.removesuffix("-sampled"), one.key, "rounds") for one in SAMPLED),
    (EQUAL_BYTES.key, SAMPLED[0].key, "bytes"),
)
"""Row with the full softmax, row with the sampled one, and what is equal."""


def section(results: Results, cost: Path = COST) -> Iterator[str]:
    """Yield the section; nothing without rows."""
    table = Table(COLUMNS)
    for setting in SETTINGS:
        measured = results.rows_of(setting.key)
        for full, own, equal in PAIRS:
            if {full, own} <= measured.keys():
                cells = _compare(measured[full], measured[own], equal)
                table.rows.append([setting.key, measured[full].title, equal, *cells])
    if table.rows:
        yield f"## Sampled softmax\n\n{prose.SAMPLED}\n\n{table.without_empty_columns()}"
        yield from _costs(cost)


def _compare(full: Row, sampled: Row, equal: str) -> list[str]:
    """Return the cells of two rows: of the full one at its end, or at the last round of the sampled one."""
    seeds = sorted(full.trials.keys() & sampled.trials.keys())
    end = max(sampled.trials[seeds[0]].curve)
    rounds = (end if equal == "rounds" else max(full.trials[seeds[0]].curve), end)
    ends = [[row.trials[seed].curve[at] for seed in seeds] for row, at in zip((full, sampled), rounds, strict=True)]
    up = [[one["megabytes_up"] for one in of_row if "megabytes_up" in one] for of_row in ends]
    hits = [[100 * one["hr20"] for one in of_row] for of_row in ends]
    differences = ", ".join(f"{own - other:+.2f}" for other, own in zip(*hits, strict=True))
    return [
        *map(str, rounds),
        *(f"{mean(values):,.0f}" if values else "" for values in up),
        *(str(row.about.chosen.get("point", "")) for row in (full, sampled)),
        *(f"{mean(values):.1f}" for values in hits),
        differences,
    ]


def _costs(path: Path) -> Iterator[str]:
    if not path.exists():
        return
    table = Table(["softmax", "items", "clients a round", "kB up a client", "CPU s a round", "peak MB"])
    for row in json.loads(path.read_text("utf-8"))["rows"]:
        sizes = f"{row['items']:,}", f"{row['answered']:.0f} of {row['clients']:,}", f"{row['kb_up_per_client']:,.0f}"
        table.rows.append([row["loss"], *sizes, f"{row['cpu_seconds_per_round']:.2f}", f"{row['peak_mb']:,.0f}"])
    yield f"{prose.COST}\n\n{table}"
