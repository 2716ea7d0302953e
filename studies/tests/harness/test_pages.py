"""Every page is a function of the stored results alone."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from studies.harness.figure_file import MOST_SVG_BYTES
from studies.harness.results import MOST_BYTES
from studies.harness.study import RESULTS, ROOT, STUDIES, Study, write_readme
from studies.markets.experiments import TITLES as MARKETS
from studies.markets.retail import TITLES as RETAIL
from studies.ratings.experiments import AUTHORS, EXPERIMENTS
from studies.rules.experiments import TITLES as RULES
from studies.sessions.experiments import TITLES as SESSIONS
from studies.traffic.experiments import EXPERIMENTS as TRAFFIC

pytestmark = pytest.mark.usefixtures("refused_noise")

TITLES = {
    "rules": RULES,
    "sessions": SESSIONS,
    "traffic": {one.key: one.title for one in TRAFFIC},
    "markets": RETAIL | MARKETS,
}


@pytest.mark.parametrize("name", STUDIES)
def test_the_committed_page_follows_from_the_stored_results(name: str, tmp_path: Path) -> None:
    shutil.copytree(RESULTS / name, tmp_path / name)
    files = Study(name, tmp_path).pages()
    assert files == {file: (RESULTS / file).read_text("utf-8") for file in files}
    assert (f"{name}/tables.md" in files) == (RESULTS / name / "tables.md").exists()


@pytest.mark.parametrize("name", STUDIES)
def test_a_page_needs_neither_data_nor_torch(name: str, tmp_path: Path) -> None:
    shutil.copytree(RESULTS / name, tmp_path / name)
    program = (
        "import sys; from studies.__main__ import main;"
        f" sys.argv = ['studies', 'page', '{name}', '--out', {str(tmp_path)!r}]; status = main();"
        " loaded = {'torch', 'flwr', 'torch_geometric', 'pyarrow'} & sys.modules.keys(); sys.exit(status or str(loaded or ''))"
    )
    environment = {"PYTHONPATH": str(ROOT), "FEDLOOM_SHARED_DATA": str(tmp_path / "none"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stderr.strip() == ""
    drawn = [f"assets/{path.name}" for path in (RESULTS / "assets").glob(f"{name}*.svg")]
    assert f"assets/{name}.svg" in drawn
    for file in (f"{name}.md", *drawn):
        assert (tmp_path / file).read_text("utf-8") == (RESULTS / file).read_text("utf-8")


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_without_results_has_a_page(name: str, tmp_path: Path) -> None:
    assert Study(name, tmp_path).write_page().read_text("utf-8").startswith("# ")


@pytest.mark.parametrize("name", ["sessions", "traffic", "ratings", "markets"])
def test_a_page_without_homes_says_nothing_of_their_generator(name: str) -> None:
    assert "generated homes" not in Study(name, RESULTS).pages()[f"{name}.md"]


def test_every_results_file_is_small() -> None:
    sizes = {path: path.stat().st_size for path in (ROOT / "docs").rglob("*") if path.is_file()}
    assert {path.name: size for path, size in sizes.items() if size > MOST_BYTES} == {}


def test_every_figure_is_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (RESULTS / "assets").glob("*.svg")}
    assert sizes.keys() > {f"{name}.svg" for name in ("rules", "lies", "robustness", "privacy")}
    assert {name: size for name, size in sizes.items() if size > MOST_SVG_BYTES} == {}


@pytest.mark.parametrize("name", TITLES)
def test_stored_titles_are_those_of_the_experiments(name: str) -> None:
    for key, row in Study(name).results().rows.items():
        if key.row in TITLES[name]:
            assert row.title == TITLES[name][key.row]


def test_stored_titles_of_ratings_are_those_of_their_protocol() -> None:
    rows = Study("ratings").results().rows
    titles = {(one.protocol, one.key): one.title for one in (*EXPERIMENTS, *AUTHORS.values())}
    stored = {(key.protocol, key.row): row.title for key, row in rows.items() if row.trials}
    both = titles.keys() & stored.keys()
    assert len(both) > 60
    assert {place: stored[place] for place in both} == {place: titles[place] for place in both}


@pytest.mark.parametrize("name", STUDIES)
def test_every_table_of_a_page_is_a_rectangle(name: str) -> None:
    files = filter(Path.exists, (RESULTS / f"{name}.md", RESULTS / name / "tables.md"))
    parts = "\n\n".join(file.read_text("utf-8") for file in files).split("\n\n")
    for table in [part.splitlines() for part in parts if part.startswith("| ")]:
        assert len({len(re.findall(r" \|", line)) for line in table}) == 1


def test_a_malformed_file_ends_with_its_place_and_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(RESULTS / "rules", tmp_path / "rules")
    stored = tmp_path / "rules" / "runs.csv"
    lines = len(stored.read_text("utf-8").splitlines())
    with stored.open("a", encoding="utf-8") as file:
        file.write("A,default,fedrule-adam,0,,,loss,\n")
    main = importlib.import_module("studies.__main__").main
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["studies", "page", "rules", "--out", str(tmp_path)])
        assert main() == 1
    assert f"runs.csv, line {lines + 1}, column 'value'" in capsys.readouterr().err
    assert not (tmp_path / "rules.md").exists()


def test_the_table_of_the_readme_follows_from_the_stored_results(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text((ROOT / "README.md").read_text("utf-8"), "utf-8")
    write_readme(readme)
    assert readme.read_text("utf-8") == (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", STUDIES)
def test_the_verdict_and_the_figure_are_the_first_screen_of_a_page(name: str) -> None:
    title, verdict, figure = (RESULTS / f"{name}.md").read_text("utf-8").split("\n\n")[:3]
    assert title.startswith("# ")
    assert verdict.startswith("**Verdict.** On ")
    assert figure.endswith(f"](assets/{name}.svg)")
