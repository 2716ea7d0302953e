"""Figure of the sessions study: HR@20 by round, mean and range over seeds."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from studies.harness.figure_file import drawn
from studies.harness.headline import Headline
from studies.harness.results import Results
from studies.harness.row import Row
from studies.sessions import prose
from studies.sessions.experiments import CENTRAL
from studies.sessions.sets import SETTINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {
    "fedga": ("FedGA", "o", "#0072b2"),
    "fedadam": ("FedAdam", "^", "#56b4e9"),
    "fedavgm": ("FedAvgM", "s", "#e69f00"),
    "fedgate": ("control variates", "D", "#cc79a7"),
    "fedavg": ("FedAvg", "v", "#d55e00"),
    "fedprox": ("FedProx", "x", "#5b6570"),
}
"""Row -> label, mark and colour (Okabe and Ito)."""

MOST_POINTS = 6
"""Largest number of points of a curve."""


@dataclass(frozen=True)
class SessionsHeadline(Headline):
    """Headline of the sessions study, with the curves beside it."""

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure of the headline and the curves."""
        super().draw(results, path)
        if _measured(results):
            _draw(results, path.with_name(f"{path.stem}-curves.svg"))


def section(results: Results) -> Iterator[str]:
    """Yield the figure with its numbers in words; nothing without curves."""
    if not (sets := _measured(results)):
        return
    last = {name: {STYLES[key][0]: 100 * row.mean("hr20") for key, row in rows.items()} for name, rows in sets.items()}
    parts = [
        f"{name}: {', '.join(f'{label} {value:.1f}' for label, value in found.items())}" for name, found in last.items()
    ]
    yield prose.CURVES
    yield f"![HR@20 in % after the last round. {'; '.join(parts)}](assets/sessions-curves.svg)"


def curve(row: Row) -> tuple[list[int], list[list[float]]]:
    """Return rounds that all seeds evaluated, the last among them, and HR@20 in % of each seed."""
    curves = [trial.curve for trial in row.trials.values()]
    rounds = sorted(set.intersection(*map(set, curves)))
    rounds = rounds[:: -math.ceil(len(rounds) / MOST_POINTS)][::-1]
    return rounds, [[100 * one[number]["hr20"] for number in rounds] for one in curves]


def _measured(results: Results) -> dict[str, dict[str, Row]]:
    """Return set -> method -> its row, of those with curves."""
    found: dict[str, dict[str, Row]] = {}
    for setting in SETTINGS:
        rows = results.rows_of(setting.key)
        chosen = {key: rows[key] for key in STYLES if key in rows and _has_curves(rows[key])}
        found |= {setting.key: chosen} if chosen else {}
    return found


def _has_curves(row: Row) -> bool:
    return bool(row.trials) and all(trial.curve for trial in row.trials.values())


def _draw(results: Results, path: Path) -> None:
    """Write a panel for each set; the dashed line is the central network."""
    sets = _measured(results)
    with drawn(path, 7.2, 2.9) as figure:
        for axes, (name, rows) in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets.items(), strict=True):
            _draw_rows(axes, rows)
            if central := results.rows_of(name).get(CENTRAL.key):
                axes.axhline(100 * central.mean("hr20"), color="#1a1a1a", linewidth=0.8, linestyle="--")
            axes.set_title(next(one.title.partition(",")[0] for one in SETTINGS if one.key == name), fontsize=8.5)
            axes.set_ylim(0, 85)
            axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=7.5)
        figure.supxlabel("round", fontsize=8.5)
        figure.supylabel("HR@20, %", fontsize=8.5)
        shown = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            list(shown.values()), list(shown), loc="outside upper center", ncols=6, fontsize=7.5, frameon=False
        )


def _draw_rows(axes: "Axes", rows: Mapping[str, Row]) -> None:
    for key, row in rows.items():
        label, mark, colour = STYLES[key]
        rounds, values = curve(row)
        each = list(zip(*values, strict=True))
        axes.plot(rounds, list(map(fmean, each)), f"{mark}-", color=colour, label=label, markersize=3, linewidth=1)
        axes.fill_between(rounds, list(map(min, each)), list(map(max, each)), color=colour, alpha=0.2, linewidth=0)
