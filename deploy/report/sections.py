"""Parts of the page: figures, tables and sections of both."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from common.metrics.spec import MetricSpec

ARROW = {"lower": "↓", "higher": "↑", "": ""}
"""Arrow of the better direction."""

Section = dict[str, Any]
Table = dict[str, Any]


def section(title: str, note: str, figures: list[dict[str, str]], table: Table | None = None) -> Section:
    """Return a section; empty, and left out of the page, without figures."""
    return {"title": title, "note": note, "figures": figures, "table": table} if figures else {}


def figure(title: str, better: str, svg: str, caption: str) -> dict[str, str]:
    """Return a figure; `better` as in `MetricSpec`."""
    return {"title": title, "arrow": ARROW[better], "svg": svg, "caption": caption}


def figure_of(m: MetricSpec, svg: str, caption: str) -> dict[str, str]:
    """Return the figure of one metric."""
    return figure(m.label, m.better, svg, caption)


def named(names: Sequence[str]) -> Markup:
    """Return a list of names without line breaks inside names."""
    return Markup(", ").join(Markup('<span class="name">{}</span>').format(name) for name in names)


def table(title: str, header: Sequence[str], rows: list[list[str]], kind: str = "numbers") -> Table:
    """Return a collapsible table; `kind` is `numbers`, aligned right, or `words`."""
    return {"title": title, "kind": kind, "header": header, "rows": rows}
