"""Figures as SVG text with CSS variables as colors, for light, dark and printed pages."""

import io
import math
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import TypeVar

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

T = TypeVar("T")

SERIES = 6
"""Number of colors; the seventh run has the first one's again."""

WIDTH, HEIGHT = 5.0, 2.7
"""Size of a figure in inches."""

INK, FAINT = "#000001", "#000002"  # placeholders, replaced by CSS variables in the SVG text
COLORS = tuple(f"#0000{i + 16:02x}" for i in range(SERIES))
_VARIABLES = {INK: "var(--ink-soft)", FAINT: "var(--rule)"} | {
    c: f"var(--series-{i + 1})" for i, c in enumerate(COLORS)
}
_STYLE = {
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "fedloom",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
}


def with_colors(runs: Sequence[T]) -> list[tuple[str, T]]:
    """Return each run with its color."""
    return [(COLORS[i % SERIES], run) for i, run in enumerate(runs)]


def dot_size(count: int) -> float:
    """Return the marker size for that number of dots."""
    return max(2.0, 7.0 - 1.6 * math.log10(count + 1))


def svg(draw: Callable[[Axes], None], title: str, height: float = HEIGHT) -> str:
    """Return the figure that `draw` fills; `title` is its accessible name."""
    with rc_context(_STYLE):  # type: ignore[arg-type]  # its keys are typed as literals
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        if axes.get_yscale() == "linear":
            axes.yaxis.set_major_locator(MaxNLocator(5))
        if axes.get_xlabel() == "round":
            axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawn = text.getvalue()[text.getvalue().index("<svg") :]
    for color, variable in _VARIABLES.items():
        drawn = drawn.replace(color, variable)
    drawn = re.sub(r"font-family: [^;\"]+;?", "", drawn)  # the page sets the typeface
    head = f'<svg role="img" aria-label="{escape(title)}"'
    return re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.S).replace("<svg", head, 1)
