"""Pages of at most 150 lines: tables and sections that do not fit go to a page of their own."""

import re

LIMIT = 150
"""Lines of a page."""

_TABLE = re.compile(
    r'<details markdown="1">\n<summary>(?P<title>.*?)</summary>\n\n(?P<table>.*?)\n\n</details>', re.DOTALL
)
_LOCAL = re.compile(r"\]\((?!https?:|#)")


def split_page(text: str, study: str) -> tuple[str, str]:
    """Return a page that fits, and the text of `STUDY/tables.md` with the rest; empty if all fits.

    Last sections go first, as few as the rest needs to fit without tables. Then the shortest tables return.
    """
    if len(text.splitlines()) <= LIMIT:
        return text, ""
    opening, *sections = text.rstrip("\n").split("\n\n## ")
    kept = len(sections)
    while kept and _lines(_page(opening, sections, kept, study, frozenset())) > LIMIT:
        kept -= 1
    tables = list(_TABLE.finditer(_join(opening, sections[:kept])))
    shown: frozenset[int] = frozenset()
    for number in sorted(range(len(tables)), key=lambda number: _lines(tables[number][0])):
        if _lines(_page(opening, sections, kept, study, shown | {number})) <= LIMIT:
            shown |= {number}
    moved = [
        f"## Table {number}\n\n{table['title']}\n\n{table['table']}"
        for number, table in enumerate(tables)
        if number not in shown
    ]
    rest = [f"## {section}" for section in sections[kept:]]
    title = f"# Further tables of {study}\n\nThe page that they belong to: [{study}]({study}.md)."
    return (
        _page(opening, sections, kept, study, shown),
        _LOCAL.sub("](../", "\n\n".join([title, *moved, *rest])) + "\n",
    )


def _page(opening: str, sections: list[str], kept: int, study: str, shown: frozenset[int]) -> str:
    """Return the page with the first sections, and links in place of the tables that are not shown."""
    numbers = iter(range(len(_TABLE.findall(_join(opening, sections[:kept])))))

    def fold(match: re.Match[str]) -> str:
        number = next(numbers)
        return match[0] if number in shown else f"[{match['title']}]({study}/tables.md#table-{number})"

    page = _TABLE.sub(fold, _join(opening, sections[:kept]))
    titles = "; ".join(section.partition("\n")[0] for section in sections[kept:])
    return page + (f"\n\n## More\n\n[On a page of their own]({study}/tables.md): {titles}.\n" if titles else "\n")


def _join(opening: str, sections: list[str]) -> str:
    return "\n\n## ".join([opening, *sections])


def _lines(text: str) -> int:
    return len(text.splitlines())
