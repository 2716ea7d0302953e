"""Markdown tables of the results pages, folded so that a page begins with its verdict and figure."""

import html
from collections.abc import Iterable, Sequence

from common.text import count


class Table:
    """A Markdown table.

    Args:
        header: Titles of the columns.
        rows: Cells, as many a row as the header has.
    """

    def __init__(self, header: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> None:
        self.header, self.rows = header, list(rows)

    def without_empty_columns(self) -> "Table":
        """Return the table without the columns that have no filled cell."""
        filled = [k for k in range(len(self.header)) if any(row[k] for row in self.rows)]
        return Table([self.header[k] for k in filled], [[row[k] for k in filled] for row in self.rows])

    def __str__(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        columns = html.escape(" · ".join(filter(None, self.header[1:])), quote=False)
        summary = f"<summary>Table of {count(len(self.rows), 'row')}: {columns}</summary>"
        return f'<details markdown="1">\n{summary}\n\n{table}\n\n</details>'
