"""The steps of `docs/howto/add-a-method.md`: its files are written and installed, its commands train two rounds."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.desk import Desk
from tools.pages import ROOT, TITLE, blocks

pytestmark = pytest.mark.system
PAGE = ROOT / "docs" / "howto" / "add-a-method.md"
SHORT = ("--rounds", "2", "--data", "demo:0-8", "--json")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the files that the page shows; return the package's folder."""
    folder = tmp_path_factory.mktemp("reader")
    for block in blocks(PAGE):
        if title := TITLE.search(block.info):
            file = folder / title["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, "utf-8")
    return folder / "examples" / "trimmed-mean-method"


def commands() -> list[list[str]]:
    """Return the arguments of the page's calls of `fedloom`."""
    lines = [line for block in blocks(PAGE) if block.info == "sh" for line in block.text.splitlines()]
    return [words[1:] for line in lines if (words := shlex.split(line))[0] == "fedloom"]


def test_the_files_of_the_page_pass_the_type_checker(package: Path) -> None:
    program = [sys.executable, "-m", "mypy", "--no-error-summary"]  # shares the cache of `make check`
    checked = subprocess.run(
        [*program, package / "trimmed_mean"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, "")


def test_the_commands_of_the_page_train_the_method(package: Path, desk: Desk) -> None:
    desk.packages.append(desk.folder / "packages")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", *desk.packages, package]
    subprocess.run(install, check=True)
    steps = commands()
    assert [step[0] for step in steps] == ["methods", "simulate", "simulate"]
    listing, *runs = [desk.start(*step, *(SHORT if step[0] == "simulate" else ())) for step in steps]
    assert [command.end() for command in (listing, *runs)] == [0, 0, 0], runs[0].error() + runs[1].error()
    assert "trimmedmean" in listing.out.read_text()
    results = [run.result() for run in runs]
    assert [(one["method"], one["rounds_done"]) for one in results] == [("trimmedmean", 2), ("uniform", 2)]
