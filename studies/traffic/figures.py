"""Figure of the traffic study: errors from broken histories, as they are, corrected and repaired."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from studies.harness.figure_file import drawn
from studies.harness.headline import Headline
from studies.harness.results import Results
from studies.harness.row import Row, in_order
from studies.traffic.experiments import FAULTS
from studies.traffic.pareto_figure import describe_pareto, draw_pareto

PANELS = {
    "GRU of the paper": {
        "student": ("as read", "o", "#d55e00"),
        "calibrated": ("forecast corrected", "s", "#e69f00"),
        "student_property": ("history repaired", "D", "#0072b2"),
        "both": ("both", "x", "#009e73"),
    },
    "profile and ridge of the default": {
        "ridge": ("as read", "o", "#d55e00"),
        "ridge_property": ("history repaired", "D", "#0072b2"),
    },
}
"""Panel -> metric -> label, marker and colour (Okabe and Ito)."""


def faults_of(results: Results, setting: str) -> dict[str, Row]:
    """Return the faults of a data set that were measured with repaired histories."""
    rows = in_order(results.rows_of(setting, "faults"), FAULTS)
    return {key: row for key, row in rows.items() if "student_property" in row.only}


def describe(rows: Mapping[str, Row]) -> str:
    """Return the figure's numbers in words."""
    shown = [f"{row.title} {row.only['ridge']:.3f}, repaired {row.only['ridge_property']:.3f}" for row in rows.values()]
    return f"MSE of profile and ridge from broken histories: {'; '.join(shown)}"


@dataclass(frozen=True)
class TrafficHeadline(Headline):
    """Headline of the traffic study, with further figures beside it."""

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure of the headline, error against satisfaction, and those of broken sensors."""
        super().draw(results, path)
        if describe_pareto(results):
            draw_pareto(results, path.with_name(f"{path.stem}-pareto.svg"))
        for setting in sorted({key.set for key in results.rows if key.protocol == "faults"}):
            if rows := faults_of(results, setting):
                _draw_faults(rows, path.with_name(f"{path.stem}-faults-{setting}.svg"))


def _draw_faults(rows: Mapping[str, Row], path: Path) -> None:
    """Write one panel a model: a line for each fault, a mark for each way to read its history."""
    with drawn(path, 7.2, 3.5) as figure:
        for axes, (title, marks) in zip(figure.subplots(1, 2, sharey=True), PANELS.items(), strict=True):
            for metric, (label, marker, colour) in marks.items():
                values = [row.only[metric] for row in rows.values()]
                axes.plot(values, range(len(rows)), marker, color=colour, label=label, markersize=5, alpha=0.9)
            axes.set_xscale("log")
            axes.minorticks_off()
            ticks = [
                tick
                for tick in (0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
                if _inside(tick, rows, marks)
            ]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_yticks(range(len(rows)), [row.title for row in rows.values()], fontsize=8)
            axes.set_title(title, fontsize=9)
            axes.grid(axis="x", color="#d9dde2", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.tick_params(length=0, labelsize=8)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        figure.supxlabel("MSE, logarithmic (left is better)", fontsize=9)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, frameon=False)


def _inside(tick: float, rows: Mapping[str, Row], marks: Mapping[str, object]) -> bool:
    values = [row.only[metric] for row in rows.values() for metric in marks]
    return 0.8 * min(values) <= tick <= 1.25 * max(values)
