"""Verdict and figure of the study of privacy noise."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.privacy.cases import EPSILONS, PROTECTIONS, Protection
from studies.privacy.figures import LARGE, Figures, Point, number
from studies.privacy.page import measured

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

STYLES: dict[Protection, tuple[str, str]] = {
    "local": ("o-", "#d55e00"),
    "helpers": ("s-", "#0072b2"),
}
"""Protection -> mark and colour (Okabe and Ito)."""

EXACT_COLOUR, FLOOR_COLOUR = "#009e73", "#5b6570"


class PrivacyHeadline:
    """Headline of the study: where noise costs more than training gains, and quality against ε."""

    def section(self, results: Results, study: str) -> Iterator[str]:
        """Yield verdict and figure, as Markdown."""
        found = list(measured(results))
        sentences = " ".join(_sentence(figures) for figures in found)
        yield f"**Verdict.** On embedded data, training is compared with the baseline that sends nothing. {sentences}"
        numbers = "; ".join(_in_words(figures) for figures in found)
        yield f"![Quality against ε. {numbers}](assets/{study}.svg)"

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure: one panel a task, with floor and quality without noise as lines."""
        with drawn(path, 7.2, 4.6) as figure:
            grid = figure.subplots(2, 3).ravel()
            for axes, figures in zip(grid, measured(results), strict=False):
                _draw(axes, figures)
            legend: dict[str, Artist] = {}
            for axes in grid:
                axes.set_visible(bool(axes.lines))
                handles, labels = axes.get_legend_handles_labels()
                legend |= dict(zip(labels, handles, strict=True))
            figure.legend(list(legend.values()), list(legend), loc="lower right", fontsize=7, frameon=False)
            figure.supxlabel("ε", fontsize=9)


def _sentence(figures: Figures) -> str:
    """Return for a task the ε from which the default gains, by protection."""
    parts = []
    for protection, points in figures.noised.items():
        gaining = [one.epsilon for one in points if one.gain > 0]
        lowest = next((e for e in gaining if all(o.gain > 0 for o in points if o.epsilon >= e)), None)
        parts.append(f"{PROTECTIONS[protection]} {f'from ε = {lowest:g}' if lowest else 'at no ε'}")
    return f"{figures.setting.task.capitalize()} gain with {', with '.join(parts)}."


def _in_words(figures: Figures) -> str:
    lines = [f"{PROTECTIONS[p]} {', '.join(map(_point, points))}" for p, points in figures.noised.items() if points]
    exact = figures.no_noise
    without = f"no noise {exact.mean:.3f}" if exact else ""
    return (
        f"{figures.setting.task}, {figures.setting.measure}: {', '.join([without, *lines])}, floor {figures.floor:.3f}"
    )


def _point(one: Point) -> str:
    used = "" if one.used is None or one.used == one.mean else f" (used {number(one.used)})"
    return f"{number(one.mean)}{used} at {one.epsilon:g}"


def _draw(axes: "Axes", figures: Figures) -> None:
    setting = figures.setting
    for protection, points in figures.noised.items():
        style, colour = STYLES[protection]
        axes.errorbar(
            [one.epsilon for one in points],
            [one.mean for one in points],
            [one.deviation for one in points],
            fmt=style,
            color=colour,
            label=PROTECTIONS[protection],
            markersize=4,
            capsize=2,
        )
        if setting.validation and (used := [one for one in points if one.used is not None]):
            axes.plot(
                [one.epsilon for one in used],
                [one.used or 0.0 for one in used],
                f"{style[0]}:",
                color=colour,
                markerfacecolor="white",
                markersize=4,
                label=f"{PROTECTIONS[protection]}, used",
            )
    if figures.no_noise:
        axes.axhline(figures.no_noise.mean, color=EXACT_COLOUR, linestyle="--", linewidth=1, label="no noise")
    axes.axhline(figures.floor, color=FLOOR_COLOUR, linewidth=1, label="floor: sends nothing")
    axes.set_xscale("log")
    if axes.get_ylim()[1] > LARGE:
        axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_title(f"{setting.task}: {setting.measure} {'↑' if setting.higher else '↓'}", fontsize=9)
    axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=0, labelsize=8)


HEADLINE = PrivacyHeadline()
