"""Figure of the traffic study: error against satisfaction of the property, a mark for each method."""

from collections.abc import Mapping
from pathlib import Path

from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.harness.row import Row
from studies.traffic.sets import BOROONDARA, TEN

PROTOCOL, ERROR, SATISFACTION = "origin-0", "mse", "rho_point"

STYLES = {
    "local": ("local only", "P", "#5b6570"),
    "fedavg": ("FedAvg", "v", "#d55e00"),
    "fedrep": ("FedRep", "<", "#e69f00"),
    "ditto": ("Ditto", ">", "#cc79a7"),
    "ifca": ("IFCA", "s", "#56b4e9"),
    "fedstl-plain": ("FedSTL, λ = 0, κ = 0", "D", "#009e73"),
    "fedstl-logic": ("FedSTL, λ = 1, κ = 0", "^", "#009e73"),
    "fedstl": ("FedSTL, equal uploads", "o", "#0072b2"),
    "fedstl-rounds": ("FedSTL, equal rounds", "*", "#0072b2"),
}
"""Row -> label, mark and colour (Okabe and Ito)."""


def describe_pareto(results: Results) -> str:
    """Return the figure's numbers in words; empty without rows."""
    parts = []
    for setting in (BOROONDARA, TEN):
        points = [
            f"{STYLES[key][0]} {row.mean(ERROR):.3f} and {100 * row.mean(SATISFACTION):.1f} %"
            for key, row in _rows(results, setting.key).items()
        ]
        parts += [f"{setting.title.partition(',')[0]}: {', '.join(points)}"] if points else []
    return "; ".join(parts)


def draw_pareto(results: Results, path: Path) -> None:
    """Write a panel for each data set, with means over seeds.

    The dashed line is the satisfaction of the truth.
    """
    with drawn(path, 7.2, 3.2) as figure:
        for axes, setting in zip(figure.subplots(1, 2), (BOROONDARA, TEN), strict=True):
            for key, row in _rows(results, setting.key).items():
                label, mark, colour = STYLES[key]
                point = ([row.mean(ERROR)], [100 * row.mean(SATISFACTION)])
                axes.plot(*point, mark, color=colour, label=label, markersize=6)
            if truth := results.rows_of(setting.key, PROTOCOL).get("baselines-paper"):
                axes.axhline(100 * truth.only[f"truth_{SATISFACTION}"], color="#1a1a1a", linewidth=0.8, linestyle="--")
            axes.set_title(setting.title.partition(",")[0], fontsize=9)
            axes.grid(color="#d9dde2", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=8)
        figure.supxlabel("MSE (left is better)", fontsize=9)
        figure.supylabel("hours that satisfy, % (up is better)", fontsize=9)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=7.5, frameon=False)


def _rows(results: Results, setting: str) -> Mapping[str, Row]:
    rows = results.rows_of(setting, PROTOCOL)
    return {key: rows[key] for key in STYLES if key in rows and rows[key].trials}
