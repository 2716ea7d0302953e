"""Figure of planning: error by share of the budget, and regret by round."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

from benchmarks.harness.results import Results
from benchmarks.harness.row import Row, Trial
from benchmarks.ratings.experiments import EXPERIMENTS, ROUNDS
from benchmarks.ratings.noise import budget_share
from benchmarks.ratings.planning import regret_sentences, regrets

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
    parts = [f"{title}: {text}" for cell, title in CELLS.items() if (text := _regret_text(rows, cell))]
    return "; ".join(parts) if any(f"bgtplanner-wide-{cell}" in rows for cell in CELLS) else ""


def spending(key: str, trial: Trial) -> list[tuple[float, float]]:
    """Return share of the budget and RMSE after each round; rows without stored shares spent evenly, to within 2 %."""
    experiment = next(one for one in EXPERIMENTS if (one.protocol, one.key) == ("paper", key))
    last = max(trial.curve)
    share = budget_share(experiment, trial.metrics["epsilon_spent"]) * last / trial.metrics["rounds"]
    return [(found.get("spent", share * n / last), found["rmse"]) for n, found in sorted(trial.curve.items())]


def draw_planning(results: Results, setting: str, path: Path) -> None:
    """Write two panels a noise: RMSE of the first split by share of the budget, and mean regret by round."""
    import matplotlib

    rows = results.rows_of(setting, "paper")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "fedloom", "font.family": "sans-serif"}):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        panels = figure.subplots(1, 4)
        for place, (cell, title) in enumerate(CELLS.items()):
            errors, regret = panels[2 * place : 2 * place + 2]
            for key, (label, marker, colour) in SERIES.items():
                style = {"marker": marker, "color": colour, "markersize": 3, "linewidth": 1}
                row = rows.get(f"{key}-{cell}")
                if row and row.trials and min(row.trials) == 0:
                    shares, values = zip(*spending(row.key.row, row.trials[0]), strict=True)
                    errors.plot([100 * share for share in shares], values, label=label, **style)
                if key in PLANNERS and (line := list(_mean_regret(rows, key, cell))):
                    regret.plot(range(1, len(line) + 1), line, **style)
            errors.set_title(title, fontsize=8)
            errors.set_xlabel("share of ε spent, %", fontsize=8)
            errors.set_ylabel("RMSE, held out", fontsize=8)
            regret.axhline(0.0, color="#5b6570", linewidth=0.8)
            regret.set_title("regret", fontsize=8)
            regret.set_xlabel("round", fontsize=8)
        for axes in panels:
            axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=7)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7, frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _mean_regret(rows: Mapping[str, Row], key: str, cell: str) -> Iterator[float]:
    found = regrets(rows, f"{key}-{cell}", cell, ROUNDS)
    for values in zip(*(path for _, path in found.values()), strict=True):
        yield fmean(values)


def _regret_text(rows: Mapping[str, Row], cell: str) -> str:
    keys = {SERIES[key][0]: f"{key}-{cell}" for key in PLANNERS}
    return "; ".join(regret_sentences(rows, keys, cell, ROUNDS))
