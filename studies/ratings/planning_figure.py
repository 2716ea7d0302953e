"""Figure of planning: error by share of the budget, and regret by round."""

from pathlib import Path
from statistics import fmean

from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.harness.row import Trial
from studies.ratings.experiments import EXPERIMENTS, ROUNDS
from studies.ratings.noise import budget_share
from studies.ratings.planning import compared, regret_text

CELLS = {"gaussian-1": "Gaussian, ε = 1", "laplace-1": "Laplace, ε = 1"}
SERIES = {
    "uniform": ("even split, 20 rounds", "o", "#56b4e9"),
    "uniform18": ("even split, 18 rounds", "v", "#0072b2"),
    "random_arm": ("random arms", "s", "#e69f00"),
    "bgtplanner": ("BGTplanner", "D", "#d55e00"),
    "bgtplanner-wide": ("BGTplanner, wide arms", "^", "#009e73"),
}
"""Part of the key of a row -> label, marker and colour (Okabe and Ito)."""

PLANNERS = ("random_arm", "bgtplanner", "bgtplanner-wide")


def describe_planning(results: Results, setting: str) -> str:
    """Return the figure's numbers in words; empty without rows of wide arms."""
    rows = results.rows_of(setting, "paper")
    texts = {title: regret_text(rows, _labels(cell), cell, ROUNDS) for cell, title in CELLS.items()}
    parts = [f"{title}: {text}" for title, text in texts.items() if text]
    return "; ".join(parts) if any(f"bgtplanner-wide-{cell}" in rows for cell in CELLS) else ""


def spending(key: str, trial: Trial) -> list[tuple[float, float]]:
    """Return share of the budget and RMSE after each round.

    Rows without stored shares spent the budget evenly, to within 2 %.
    """
    experiment = next(one for one in EXPERIMENTS if (one.protocol, one.key) == ("paper", key))
    last = max(trial.curve)
    share = budget_share(experiment, trial.metrics["epsilon_spent"]) * last / trial.metrics["rounds"]
    return [(found.get("spent", share * n / last), found["rmse"]) for n, found in sorted(trial.curve.items())]


def draw_planning(results: Results, setting: str, path: Path) -> None:
    """Write two panels a noise: RMSE of the first split by share of the budget, and mean regret by round."""
    rows = results.rows_of(setting, "paper")
    with drawn(path, 7.2, 3.6) as figure:
        panels = figure.subplots(1, 4)
        for place, (cell, title) in enumerate(CELLS.items()):
            errors, regret = panels[2 * place : 2 * place + 2]
            paths = compared(rows, _labels(cell), cell, ROUNDS)
            for key, (label, marker, colour) in SERIES.items():
                style = {"marker": marker, "color": colour, "markersize": 3, "linewidth": 1}
                row = rows.get(f"{key}-{cell}")
                if row and row.trials and min(row.trials) == 0:
                    shares, values = zip(*spending(row.key.row, row.trials[0]), strict=True)
                    errors.plot([100 * share for share in shares], values, label=label, markevery=3, **style)
                if one := paths.get(f"{key}-{cell}"):
                    means = [fmean(values) for values in zip(*(path for _, path in one.values()), strict=True)]
                    regret.plot(range(1, len(means) + 1), means, markevery=4, **style)
            errors.set_title(title, fontsize=8)
            errors.set_xlabel("share of ε spent, %", fontsize=8)
            errors.set_ylabel("RMSE, held out", fontsize=8)
            regret.axhline(0.0, color="#5b6570", linewidth=0.8)
            regret.set_title("regret, mean of splits", fontsize=8)
            regret.set_xlabel("round", fontsize=8)
        for axes in panels:
            axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=7)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7, frameon=False)


def _labels(cell: str) -> dict[str, str]:
    """Return row -> name of the planners under a noise."""
    return {f"{key}-{cell}": SERIES[key][0] for key in PLANNERS}
