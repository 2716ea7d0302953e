"""Figure of the ratings study: error against ε, with the floor that sends nothing."""

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from studies.harness.figure_file import drawn
from studies.harness.headline import Headline
from studies.harness.results import Results
from studies.harness.row import Row
from studies.ratings.experiments import HELPED, OWN, PLANNERS
from studies.ratings.noise import MECHANISMS, NOISES
from studies.ratings.planning_figure import describe_planning, draw_planning

SPLITS = 5
"""Number of the first splits, which all rows have."""

FLOOR, NO_NOISE = "own mean, sends nothing", "no noise"
PANELS = {
    "default, one report": {
        f"once/{name}-{{}}": (title, marker, colour)
        for (name, title), marker, colour in zip(
            NOISES.items(), "^Dos", ("#cc79a7", "#0072b2", "#d55e00", "#e69f00"), strict=True
        )
    },
    "paper's model, 20 rounds": {
        f"paper/{planner}-{noise}-{{}}": (f"{PLANNERS[planner].strip('*')}, {MECHANISMS[noise]}", marker, colour)
        for planner, noise, marker, colour in (
            ("bgtplanner", "gaussian", "D", "#0072b2"),
            ("uniform", "gaussian", "o", "#56b4e9"),
            ("bgtplanner", "laplace", "s", "#d55e00"),
            ("uniform", "laplace", "v", "#e69f00"),
        )
    },
}
"""Panel -> row, as `protocol/row` with a place for ε -> label, marker and colour (Okabe and Ito)."""


def series(results: Results, setting: str, pattern: str) -> dict[float, list[float]]:
    """Return ε -> RMSE of the first splits, of the rows that were run."""
    protocol, _, name = pattern.partition("/")
    rows = results.rows_of(setting, protocol)
    found = {epsilon: rows.get(name.format(f"{epsilon:g}")) for epsilon in HELPED}
    return {epsilon: _errors(row) for epsilon, row in found.items() if row}


def describe(results: Results, setting: str) -> str:
    """Return the figure's numbers in words; empty without rows of the default."""
    found = {title: series(results, setting, key) for key, (title, *_) in PANELS["default, one report"].items()}
    shown = [
        f"{title} {', '.join(f'{fmean(values):.4f} at {epsilon:g}' for epsilon, values in one.items())}"
        for title, one in found.items()
        if one
    ]
    return f"RMSE against ε: {'; '.join(shown)}; {FLOOR} {_floor(results, setting):.4f}" if shown else ""


@dataclass(frozen=True)
class RatingsHeadline(Headline):
    """Headline of the ratings study, with a figure of the error against ε for each data set beside it."""

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure of the headline and those against ε."""
        super().draw(results, path)
        for setting in sorted({key.set for key in results.rows}):
            if describe(results, setting):
                _draw_epsilon(results, setting, path.with_name(f"{path.stem}-epsilon-{setting}.svg"))
            if describe_planning(results, setting):
                draw_planning(results, setting, path.with_name(f"{path.stem}-planning-{setting}.svg"))


def _draw_epsilon(results: Results, setting: str, path: Path) -> None:
    """Write one panel a model: mean and standard deviation over splits at each ε."""
    with drawn(path, 7.2, 3.6) as figure:
        for axes, (title, rows) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
            for key, (label, marker, colour) in rows.items():
                found = series(results, setting, key)
                means = [fmean(values) for values in found.values()]
                spread = [stdev(values) if len(values) > 1 else 0.0 for values in found.values()]
                axes.errorbar(
                    list(found), means, spread, fmt=f"{marker}-", color=colour, label=label, markersize=4, capsize=2
                )
            axes.axhline(_floor(results, setting), color="#5b6570", linewidth=1, label=FLOOR)
            if (exact := results.rows_of(setting, "once").get("none")) and title.startswith("default"):
                axes.axhline(fmean(_errors(exact)), color="#009e73", linewidth=1, linestyle="--", label=NO_NOISE)
            axes.set_xscale("log")
            axes.minorticks_off()
            axes.set_xticks(HELPED, [f"{epsilon:g}" for epsilon in HELPED])
            axes.set_title(title, fontsize=9)
            axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=8)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, fontsize=7, frameon=False)
        figure.supxlabel("ε of a user", fontsize=9)
        figure.supylabel("RMSE (lower is better)", fontsize=9)


def _floor(results: Results, setting: str) -> float:
    return fmean(_errors(results.rows_of(setting, "all")[OWN]))


def _errors(row: Row) -> list[float]:
    return [value for seed, value in row.values("rmse").items() if seed < SPLITS]
