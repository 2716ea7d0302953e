"""Verdict and figure of the study of rule lists."""

from collections.abc import Iterator
from pathlib import Path

from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.homes.page import measured

COLOURS = {"before": "#d55e00", "unrefused": "#5b6570", "shown": "#0072b2"}
"""Row -> colour (Okabe and Ito)."""


class HomesHeadline:
    """Headline of the study: precision of the first five rules, before and after."""

    def section(self, results: Results, study: str) -> Iterator[str]:
        """Yield verdict and figure, as Markdown."""
        rows = measured(results)
        numbers = ", ".join(f"{row.mean('precision5'):.3f} ({row.title})" for row in rows.values())
        yield f"**Verdict.** On homes with held-out habits, precision@5 is {numbers}."
        yield f"![Precision at five. {numbers}](assets/{study}.svg)"

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure: a bar for each row, a point for each seed."""
        with drawn(path, 6.0, 2.0) as figure:
            axes = figure.subplots()
            rows = measured(results)
            for k, (name, row) in enumerate(reversed(rows.items())):
                values = list(row.values("precision5").values())
                axes.barh(k, row.mean("precision5"), color=COLOURS[name], height=0.6)
                axes.plot(values, [k] * len(values), "o", color="black", markersize=2)
            axes.set_yticks(range(len(rows)), [row.title for row in reversed(rows.values())], fontsize=8)
            axes.set_xlim(0, 1)
            axes.set_xlabel("precision@5", fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=8)


HEADLINE = HomesHeadline()
