"""Verdicts on the papers' claims follow from the stored runs, and sentences about them carry their verdict."""

import csv
import re
from pathlib import Path
from statistics import fmean

import pytest

from studies.harness.contrast import SMALLEST, Contrast
from studies.harness.paper_claim import COLUMNS, PaperClaim, claims_csv, judge
from studies.harness.papers import CLAIMS
from studies.harness.results import Results
from studies.harness.row import RowKey
from studies.harness.study import RESULTS, ROOT, write_claims
from tests.support.study_rows import row
from tools.pages import pages, prose

NAMES = re.compile(r"FedRule|FedGA\b|FedSTL|BGTplanner|PF-GNN")
COMPARED = re.compile(
    r"\b(beats?|better|worse|best|leads?|lead|ends|outperforms?|equals?|trails?|gains?|as well|higher|lower)\b"
)
MARK = re.compile(r"<!-- claim (\w+): ([\w-]+) -->")
ITEM = re.compile(r"\n\s*\n|\n(?=[-|#])")
MARKED_PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))


def stored() -> list[dict[str, str]]:
    with (RESULTS / "claims.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def verdicts() -> dict[str, str]:
    return {line["id"]: line["verdict"] for line in stored() if not line["where"]}


def test_the_committed_claims_follow_from_the_stored_runs(tmp_path: Path) -> None:
    for study in ("rules", "sessions", "traffic", "ratings", "markets", "robustness"):
        (tmp_path / study).symlink_to(RESULTS / study)
    page = write_claims(tmp_path)
    assert page.read_text("utf-8") == (RESULTS / "claims.md").read_text("utf-8")
    assert (tmp_path / "claims.csv").read_bytes() == (RESULTS / "claims.csv").read_bytes()


def test_an_effect_is_the_mean_difference_of_runs_csv() -> None:
    """Read both rows of one comparison off the numbers of their set without the harness."""
    values: dict[str, dict[str, float]] = {"fedga": {}, "fedyogi": {}}
    with (RESULTS / "sessions" / "runs-gowalla.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            place = (line["set"], line["protocol"], line["metric"], line["round"], line["client"])
            if place == ("gowalla", "default", "hr20", "", "") and line["row"] in values:
                values[line["row"]][line["seed"]] = float(line["value"])
    [found] = [line for line in stored() if line["id"] == "G2" and line["where"] == "gowalla/default, hr20"]
    effect = fmean(values["fedga"][seed] - values["fedyogi"][seed] for seed in values["fedga"])
    assert (found["effect"], found["n"]) == (f"{effect:+.4g}", "5")


def test_each_claim_has_one_verdict_and_a_reason_where_it_is_open() -> None:
    assert [one.id for one in CLAIMS] == [
        *(f"R{k}" for k in range(1, 6)),
        *(f"G{k}" for k in range(1, 7)),
        *(f"S{k}" for k in range(1, 5)),
        *(f"B{k}" for k in range(1, 4)),
        *(f"P{k}" for k in range(1, 4)),
    ]
    whole = [line for line in stored() if not line["where"]]
    assert [line["id"] for line in whole] == [one.id for one in CLAIMS]
    assert all(line["deviation"] for line in whole if line["verdict"] in {"open", "not-testable"})


def test_each_study_of_a_claim_has_a_smallest_effect() -> None:
    for one in (contrast for claim in CLAIMS for contrast in claim.contrasts):
        assert SMALLEST[one.study][one.metric] > 0


@pytest.mark.parametrize(
    ("losses", "verdict"), [((0.5, 0.52, 0.51, 0.49, 0.5), "confirmed"), ((1.0, 1.001, 1.0, 0.999, 1.0), "level")]
)
def test_a_claim_is_judged_by_its_rows(losses: tuple[float, ...], verdict: str) -> None:
    claim = PaperClaim("paper", "R9", "a beats b", [Contrast("rules", "set/default", "a", "b", "loss")])
    rows = (row("a", dict(enumerate(losses))), row("b", dict.fromkeys(range(5), 1.0)))
    results = {"rules": Results(rows={RowKey("set", "default", one.key.row): one for one in rows})}
    [found] = judge([claim], results)
    assert found.verdict == verdict
    lines = list(csv.DictReader(claims_csv([found]).splitlines()))
    assert tuple(lines[0]) == COLUMNS
    assert [line["verdict"] for line in lines] == [verdict, verdict]
    assert float(lines[1]["effect"]) == pytest.approx(1 - fmean(losses), rel=1e-3)


def test_a_claim_without_rows_is_open() -> None:
    claim = PaperClaim("paper", "R9", "a beats b", [Contrast("rules", "set/default", "a", "b", "loss")])
    [found] = judge([claim], {"rules": Results()})
    assert (found.verdict, next(csv.DictReader(claims_csv([found]).splitlines()))["n"]) == ("open", "")


@pytest.mark.parametrize("page", MARKED_PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_marked_sentences_have_the_verdict_of_the_table(page: Path) -> None:
    found = verdicts()
    assert {mark: found[mark[0]] for mark in MARK.findall(page.read_text("utf-8"))} == {
        mark: mark[1] for mark in MARK.findall(page.read_text("utf-8"))
    }


def test_sentences_on_a_papers_result_are_marked() -> None:
    unmarked = [
        f"{page.relative_to(ROOT)}: {item.strip()[:80]}"
        for page in pages()
        if page.parent == RESULTS or page == ROOT / "README.md"
        for item in ITEM.split(prose(page))
        if NAMES.search(item) and COMPARED.search(item) and not MARK.search(item) and not item.startswith("|")
    ]
    assert unmarked == []
