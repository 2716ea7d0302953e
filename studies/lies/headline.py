"""Verdict and figure of the study of lies."""

from collections.abc import Iterator
from pathlib import Path

from common.text import count
from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.lies.cases import LIES, SETTINGS
from studies.lies.figures import Figures

COLOURS = dict(zip(SETTINGS, ("#1f5fa8", "#c0392b", "#2e8b57", "#c98a1b", "#8e44ad"), strict=True))
LEAST, MOST = -2.0, 2.0
"""Ends of the axis; values beyond them stand at the ends."""


class LiesHeadline:
    """Headline of the study: runs that finished, models that are as good, and liars that were named."""

    def section(self, results: Results, study: str) -> Iterator[str]:
        """Yield verdict and figure, as Markdown."""
        figures = Figures(results)
        if not (found := [*figures.all()]):
            return
        methods = len({one.case.method for one in found})
        lies = len({one.case.lie for one in found})
        yield (
            f"**Verdict.** On demo data of five tasks, one of six clients lies: {lies} lies against"
            f" {count(methods, 'method')}, {count(len(found), 'run')}. The others finish in"
            f" {sum(one.finished for one in found)}. Their model is within one seed's spread of the run without the liar in"
            f" {sum(one.within for one in found)}. The liar is named in {sum(one.named for one in found)}, an honest client"
            f" by mistake in {figures.honest_named()}."
        )
        words = "Loss of quality against the run without the liar, for each lie and each method, in spreads over seeds"
        yield f"![{words}](assets/{study}.svg)"

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure: a mark for the runs of a lie and task, one for those of equal harm."""
        found, names = [*Figures(results).all()], [*LIES]
        with drawn(path, 7.2, 3.6) as figure:
            axes = figure.subplots()
            for shift, (task, colour) in enumerate(COLOURS.items()):
                runs = [one for one in found if one.case.task == task]
                marks = {(names.index(one.case.lie), round(min(max(one.harm, LEAST), MOST), 2)) for one in runs}
                places, values = zip(*sorted(marks), strict=True) if marks else ((), ())
                shifted = [place + 0.14 * (shift - 2) for place in places]
                axes.plot(shifted, values, "o", color=colour, markersize=3, alpha=0.7, label=task, linestyle="")
            axes.axhline(1, color="#5b6570", linewidth=0.8)
            axes.set(ylim=(LEAST - 0.1, MOST + 0.1), xticks=range(len(names)))
            axes.set_xticklabels(names, rotation=35, ha="right", fontsize=8)
            axes.set_ylabel("loss of quality, in spreads", fontsize=9)
            axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=8)
            figure.legend(loc="outside upper center", ncols=len(COLOURS), fontsize=8, frameon=False)


HEADLINE = LiesHeadline()
