"""Generated pages of the reference follow from the code."""

from tests.support.scripts import load
from tools.pages import ROOT

MAKER = load("make_reference")


def test_pages_follow_from_the_code() -> None:
    stored = {name: (ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8") for name in MAKER.PAGES}
    assert [name for name, page in stored.items() if MAKER.make(name) != page] == [], (
        "run python docs/make_reference.py"
    )


def test_every_row_of_a_page_has_a_meaning() -> None:
    for name in MAKER.PAGES:
        rows = [line for line in MAKER.make(name).splitlines() if line.startswith("| `")]
        assert rows, name
        assert [row for row in rows if row.endswith("|  |")] == [], name


def test_every_command_and_every_message_has_a_section() -> None:
    headings = {line for page in ("cli", "wire") for line in MAKER.make(page).splitlines() if line.startswith("## ")}
    assert {"## fedloom up", "## fedloom nodes revoke", "## TrainReply", "## AssignRequest"} <= headings
