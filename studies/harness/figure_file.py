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
_HASH = re.compile(r"\b[a-zA-Z][0-9a-f]{10}\b")


@contextmanager
def drawn(path: Path, width: float, height: float) -> Iterator["Figure"]:
    """Yield a figure of this size in inches; write it at the end of the block.

    Texts stay texts. Coordinates are in hundredths of a point, without indentation. Identifiers are numbered: matplotlib hashes
    coordinates, whose last bit differs between processors.
    """
    import matplotlib

    fonts = ["DejaVu Sans", "Arial"]
    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.sans-serif": fonts}):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        content = io.StringIO()
        figure.savefig(content, format="svg", metadata={"Date": None})
    text = _LONG.sub(_rounded, _INDENT.sub("", content.getvalue()))
    names = {name: f"s{number}" for number, name in enumerate(dict.fromkeys(_HASH.findall(text)))}
    path.write_text(_HASH.sub(lambda found: names[found[0]], text), "utf-8")


def _rounded(found: re.Match[str]) -> str:
    """Return a coordinate in hundredths; text between elements stays."""
    return found[0] if found[0].startswith(">") else f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
