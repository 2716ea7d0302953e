"""Tutorials and notebooks run with fewer rounds and clients than they are written with, and the pages show them."""

import re
import runpy
from pathlib import Path

import jupytext
import nbclient
import pytest

from tests.support.scripts import load
from tests.system.desk import ROOT

pytestmark = pytest.mark.system
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
MOST_LINES, SECONDS = 80, 300
PAGES = [script for script in [*TUTORIALS, *NOTEBOOKS] if script.with_suffix(".md").exists()]


def shortened(script: Path, folder: Path) -> Path:
    """Write a script with two rounds and a fifth of the generated clients to a folder."""
    text = re.sub(r"rounds=\d+", "rounds=2", script.read_text("utf-8"))
    text = re.sub(r"(demo:(?:\w+:)?0-)(\d+)", lambda found: f"{found[1]}{max(3, int(found[2]) // 5)}", text)
    path = folder / script.name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(shortened(script, tmp_path)), run_name="__main__")
    printed = capfd.readouterr()
    assert printed.out
    assert printed.err == ""
    assert len(script.read_text("utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("script", PAGES, ids=lambda path: path.stem)
def test_the_page_shows_the_script(script: Path) -> None:
    maker = load("make_tutorials")
    page = script.with_suffix(".md").read_text("utf-8")
    assert [section for section in maker.sections(script, execute=False) if section not in page] == []


@pytest.mark.parametrize("script", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = jupytext.read(shortened(script, tmp_path))
    client = nbclient.NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
        extra_arguments=["--transport=ipc"],
    )
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any(output.get("name") == "stdout" for output in outputs)
    assert not [output for output in outputs if output.output_type == "error"]
