"""SVG files of figures: the same bytes from the same results, and small."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SVG_BYTES = 60_000
"""Largest size of a figure."""

_INDENT, _LONG = re.compile("^ +", re.MULTILINE), re.compile(r">[^<]*<|\d+\.\d{3,}")


@contextmanager
def small_figures() -> Iterator[None]:
    """Draw figures in this block in the style of `save_small`."""
    import matplotlib

    with matplotlib.rc_context(
        {
            "svg.fonttype": "none",  # texts stay texts
            "svg.hashsalt": "fedloom",  # equal identifiers each time
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans", "Arial"],
        }
    ):
        yield


def save_small(figure: "Figure", path: Path) -> None:
    """Write a figure as SVG, with coordinates in hundredths of a point and without indentation."""
    content = io.StringIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    path.write_text(_LONG.sub(_rounded, _INDENT.sub("", content.getvalue())), "utf-8")


def _rounded(found: re.Match[str]) -> str:
    """Return a coordinate in hundredths; text between elements stays."""
    return found[0] if found[0].startswith(">") else f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
