"""The parts of which the page is made: figures, tables and the sections that hold them."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from common.metrics.spec import MetricSpec

ARROW = {"lower": "↓", "higher": "↑", "": ""}
"""Which way is better."""

Section = dict[str, Any]
Table = dict[str, Any]


def section(title: str, note: str, figures: list[dict[str, str]], table: Table | None = None) -> Section:
    """A section; an empty one, which the page leaves out, where there is nothing to see."""
    return {"title": title, "note": note, "figures": figures, "table": table} if figures else {}


def figure(title: str, better: str, svg: str, caption: str) -> dict[str, str]:
    """A figure; `better` as in `MetricSpec`."""
    return {"title": title, "arrow": ARROW[better], "svg": svg, "caption": caption}


def figure_of(m: MetricSpec, svg: str, caption: str) -> dict[str, str]:
    """The figure of one metric."""
    return figure(m.label, m.better, svg, caption)


def named(names: Sequence[str]) -> Markup:
    """A list of names none of which is broken over two lines."""
    return Markup(", ").join(Markup('<span class="name">{}</span>').format(name) for name in names)


def table(title: str, header: Sequence[str], rows: list[list[str]], kind: str = "numbers") -> Table:
    """A table to unfold; `kind`: `numbers`, set flush right, or `words`."""
    return {"title": title, "kind": kind, "header": header, "rows": rows}
