"""Pages that do not fit hand tables and last sections to a page of their own."""

import re

import pytest

from studies.harness.split_page import LIMIT, split_page
from studies.harness.study import RESULTS
from studies.harness.table import Table

GENERATED = (
    "rules",
    "sessions",
    "traffic",
    "ratings",
    "markets",
    "robustness",
    "lies",
    "audit",
    "privacy",
    "homes",
    "claims",
)


def table(rows: int) -> str:
    return str(Table(["name", "value"], [[f"row {k}", str(k)] for k in range(rows)]))


def test_a_page_that_fits_is_left_alone() -> None:
    text = f"# Title\n\n{table(20)}\n"
    assert split_page(text, "rules") == (text, "")


def test_the_longest_tables_move_and_leave_a_link() -> None:
    text = "\n\n".join(["# Title", table(100), "## Section [a](assets/a.svg)", table(50), "end"]) + "\n"
    page, rest = split_page(text, "rules")
    assert "[Table of 100 rows: value](rules/tables.md#table-0)" in page
    assert "| row 49 | 49 |" in page
    assert page.endswith("\n\nend\n")
    assert "## Table 0\n\nTable of 100 rows: value\n\n| name | value |" in rest
    assert rest.count("| row ") == 100


def test_sections_that_do_not_fit_without_tables_move_with_their_links() -> None:
    long = "\n".join(f"- line {k}" for k in range(90))
    text = (
        f"# Title\n\n## First\n\n{long}\n\n## Second\n\n{long}\n\n[b](assets/b.svg) [c](https://c.org)\n\n{table(3)}\n"
    )
    page, rest = split_page(text, "rules")
    assert len(page.splitlines()) <= LIMIT
    assert page.endswith("## More\n\n[On a page of their own](rules/tables.md): Second.\n")
    assert "## Second" in rest
    assert "[b](../assets/b.svg) [c](https://c.org)" in rest
    assert "| row 2 | 2 |" in rest


@pytest.mark.parametrize("name", GENERATED)
def test_every_page_fits_and_every_link_to_a_table_has_one(name: str) -> None:
    page, tables = (RESULTS / f"{name}.md").read_text("utf-8"), RESULTS / name / "tables.md"
    assert len(page.splitlines()) <= LIMIT
    linked = set(re.findall(rf"\({name}/tables\.md#table-(\d+)\)", page))
    held = set(re.findall(r"^## Table (\d+)$", tables.read_text("utf-8"), re.MULTILINE)) if tables.exists() else set()
    assert linked == held
