"""Examples of the documentation run and print what the pages show."""

import doctest
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs"
EXAMPLE = re.compile(r"^```pycon\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["temporal-logic.md"])
def test_the_examples_of_a_page_run(name: str) -> None:
    examples = "".join(EXAMPLE.findall((PAGES / name).read_text("utf-8")))
    assert examples
    test = doctest.DocTestParser().get_doctest(examples, {}, name, name, 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not report, "".join(report)
