"""Figure of the rules study: test loss by round, mean and range over seeds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from studies.harness.figure_file import drawn
from studies.harness.headline import Headline
from studies.harness.results import Results
from studies.harness.row import Row, mean_sd
from studies.harness.table import Table
from studies.rules import drift_section, prose
from studies.rules.curves import CURVES, EVERY, EXPERIMENTS, PANELS, RISE, ROUNDS, SET

STYLES = {
    "graphrule": ("#5b6570", "^", "GraphRule"),
    "fedgnn": ("#d55e00", "s", "FedGNN"),
    "fedrule": ("#0072b2", "o", "FedRule"),
}
"""Method -> colour (Okabe and Ito), mark and name."""


LEARNS = 0.693
"""Loss of a model that answers ½ for every rule."""


@dataclass(frozen=True)
class RulesHeadline(Headline):
    """Headline of the rules study, with the curves beside it."""

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure of the headline, the curves and the drift laboratory."""
        super().draw(results, path)
        if rows := results.rows_of(SET, CURVES):
            _draw_curves(rows, path.with_name(f"{path.stem}-curves.svg"))
        if drift_section.is_complete(results):
            drift_section.draw(results, path.with_name(f"{path.stem}-drift.svg"))


def section(results: Results) -> Iterator[str]:
    """Yield the curves and what they show; nothing without them."""
    rows = results.rows_of(SET, CURVES)
    measured = [rows[one.key] for one in EXPERIMENTS if one.key in rows and rows[one.key].trials]
    if not measured:
        return
    yield prose.CURVES.format(rounds=ROUNDS, every=EVERY, setup=SET)
    words = "; ".join(f"{row.title} {row.mean('loss'):.3f}" for row in measured)
    yield f"![Test loss by round; after {ROUNDS} rounds: {words}](assets/rules-curves.svg)"
    metrics = ("loss", "least_loss", RISE, "auc", "mr0")
    cells = [
        [row.title, str(len(row.trials)), *(mean_sd(row.values(m).values(), 3) for m in metrics)] for row in measured
    ]
    yield str(Table(["method", "seeds", "last loss", "least loss", "rise", "AUC", "MR"], cells))
    if "fedrule-letter" in rows:
        letter = rows["fedrule-letter"].mean("loss")
        yield (
            f"**The paper's letter (Adam at .1 in Eq 3) does not learn here: loss {letter:.3g}.**"
            if letter > LEARNS
            else (f"The paper's letter (Adam at .1 in Eq 3) ends at loss {letter:.3g}.")
        )


def _draw_curves(rows: Mapping[str, Row], path: Path) -> None:
    with drawn(path, 7.2, 2.8) as figure:
        for axes, (title, keys) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
            for row in (rows[key] for key in keys if key in rows and rows[key].trials):
                colour, mark, name = STYLES[row.key.row.partition("-")[0]]
                curves = [{n: found["loss"] for n, found in trial.curve.items()} for trial in row.trials.values()]
                rounds = sorted(set.intersection(*map(set, curves)))
                axes.plot(
                    rounds,
                    [fmean(curve[n] for curve in curves) for n in rounds],
                    f"{mark}-",
                    color=colour,
                    label=name,
                    markersize=3,
                )
                low, high = ([end(curve[n] for curve in curves) for n in rounds] for end in (min, max))
                axes.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.set_yscale("log")
            axes.set_title(title, fontsize=9)
            axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=8)
            axes.legend(fontsize=7.5, frameon=False)
        figure.supxlabel("round", fontsize=9)
        figure.supylabel("test loss (lower is better)", fontsize=9)
