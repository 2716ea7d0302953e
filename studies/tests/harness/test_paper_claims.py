"""Verdicts on the papers' claims follow from the stored runs, and sentences about them carry their verdict."""

import csv
import re
from pathlib import Path
from statistics import fmean

import pytest

from studies.harness.contrast import SMALLEST, Contrast
from studies.harness.paper_claim import COLUMNS, PaperClaim, claims_csv, judge
from studies.harness.paper_effects import Reported
from studies.harness.papers import CLAIMS
from studies.harness.results import Results
from studies.harness.row import RowKey
from studies.harness.study import RESULTS, ROOT, STUDIES, write_claims, write_worth
from tests.support.study_rows import row
from tools.pages import pages, prose

NAMES = re.compile(r"FedRule|FedGA\b|FedSTL|BGTplanner|PF-GNN")
COMPARED = re.compile(
    r"\b(beats?|better|worse|best|leads?|lead|ends|outperforms?|equals?|trails?|gains?|as well|higher|lower)\b"
)
MARK = re.compile(r"<!-- claim (\w+)( beyond)?: ([\w -]+?) -->")
ITEM = re.compile(r"\n\s*\n|\n(?=[-|#])")
MARKED_PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))


def stored() -> list[dict[str, str]]:
    with (RESULTS / "claims.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def verdicts() -> dict[tuple[str, str], str]:
    """Return claim and protocol -> verdict."""
    return {(line["id"], line["protocol"]): line["verdict"] for line in stored() if not line["where"]}


def test_the_committed_claims_follow_from_the_stored_runs(tmp_path: Path) -> None:
    for study in ("rules", "sessions", "traffic", "ratings", "markets", "robustness"):
        (tmp_path / study).symlink_to(RESULTS / study)
    page = write_claims(tmp_path)
    assert page.read_text("utf-8") == (RESULTS / "claims.md").read_text("utf-8")
    assert (tmp_path / "claims.csv").read_bytes() == (RESULTS / "claims.csv").read_bytes()


def test_the_committed_page_on_worth_follows_from_the_stored_runs(tmp_path: Path) -> None:
    for study in STUDIES:
        (tmp_path / study).symlink_to(RESULTS / study)
    assert write_worth(tmp_path).read_text("utf-8") == (RESULTS / "worth.md").read_text("utf-8")


def test_an_effect_is_the_mean_difference_of_runs_csv() -> None:
    """Read both rows of one comparison off the numbers of their set without the harness."""
    values: dict[str, dict[str, float]] = {"fedga": {}, "fedyogi": {}}
    with (RESULTS / "sessions" / "runs-diginetica.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            place = (line["set"], line["protocol"], line["metric"], line["round"], line["client"])
            if place == ("diginetica", "default", "hr20", "", "") and line["row"] in values:
                values[line["row"]][line["seed"]] = float(line["value"])
    [found] = [line for line in stored() if line["id"] == "G2" and line["where"] == "diginetica/default, hr20"]
    effect = fmean(values["fedga"][seed] - values["fedyogi"][seed] for seed in values["fedga"])
    assert (found["effect"], found["n"]) == (f"{effect:+.4g}", "5")


def test_an_effect_under_the_papers_protocol_is_a_share_of_the_second_row() -> None:
    """Table 2 of FedSTL has an MSE 8.6 % above IFCA's; here it is 9.2 %, by the means of runs.csv."""
    means: dict[str, list[float]] = {"fedstl-rounds": [], "ifca": []}
    with (RESULTS / "traffic" / "runs.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            place = (line["set"], line["protocol"], line["metric"], line["round"], line["client"])
            if place == ("boroondara", "origin-0", "mse", "", "") and line["row"] in means:
                means[line["row"]].append(float(line["value"]))
    [found] = [line for line in stored() if line["id"] == "S1" and line["reported"] == "-0.08571"]
    assert found["effect"] == f"{1 - fmean(means['fedstl-rounds']) / fmean(means['ifca']):+.4g}" == "-0.09161"
    assert found["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("effect", "ours", "agreement"),
    [
        (0.10, (0.11, 0.12, 0.10, 0.13, 0.12), "reproduced"),
        (0.10, (0.21, 0.22, 0.20, 0.23, 0.22), "larger"),
        (0.10, (0.02, 0.03, 0.02, 0.03, 0.02), "smaller"),
        (0.10, (-0.02, -0.03, -0.02, -0.03, -0.02), "refuted"),
        (0.10, (0.02, -0.03, 0.02, -0.03, 0.02), "smaller"),
        (0.10, (0.20, -0.30, 0.20, -0.30, 0.20), "reproduced"),
        (-0.10, (-0.11, -0.12, -0.10, -0.13, -0.12), "reproduced"),
        (-0.10, (0.11, 0.12, 0.10, 0.13, 0.12), "refuted"),
        (None, (0.02, 0.03, 0.02, 0.03, 0.02), "reproduced"),
        (None, (0.02, -0.03, 0.02, -0.03, 0.02), "open"),
        (None, (-0.02, -0.03, -0.02, -0.03, -0.02), "refuted"),
        (0.10, (0.11, 0.12), "open"),
    ],
)
def test_sign_and_size_decide_whether_an_effect_is_reproduced(
    effect: float | None, ours: tuple[float, ...], agreement: str
) -> None:
    contrast = Contrast("rules", "set/default", "a", "b", "loss")
    rows = (row("a", {seed: 1 - one for seed, one in enumerate(ours)}), row("b", dict.fromkeys(range(5), 1.0)))
    results = {"rules": Results(rows={RowKey("set", "default", one.key.row): one for one in rows})}
    [found] = judge([PaperClaim("paper", "R9", "a beats b", [Reported("text", (contrast,), effect)])], results)
    assert found.agreement == agreement


def test_each_claim_has_one_verdict_and_a_reason_where_it_is_open() -> None:
    assert [one.id for one in CLAIMS] == [
        *(f"R{k}" for k in range(1, 7)),
        *(f"G{k}" for k in range(1, 8)),
        *("S1", "S2", "S4"),
        *(f"B{k}" for k in range(1, 4)),
        *(f"P{k}" for k in range(1, 4)),
    ]
    whole = [line for line in stored() if not line["where"]]
    protocols = [(one.id, protocol) for one in CLAIMS for protocol in ("paper", "beyond")]
    assert [(line["id"], line["protocol"]) for line in whole] == protocols
    assert all(line["deviation"] for line in whole if line["verdict"] in {"open", "not-testable"})


def test_each_study_of_a_claim_has_a_smallest_effect() -> None:
    for one in (contrast for claim in CLAIMS for contrast in claim.needed):
        assert SMALLEST[one.study][one.metric] > 0


@pytest.mark.parametrize(
    ("losses", "verdict"), [((0.5, 0.52, 0.51, 0.49, 0.5), "holds"), ((1.0, 1.001, 1.0, 0.999, 1.0), "level")]
)
def test_a_claim_is_judged_by_its_rows(losses: tuple[float, ...], verdict: str) -> None:
    claim = PaperClaim("paper", "R9", "a beats b", contrasts=[Contrast("rules", "set/default", "a", "b", "loss")])
    rows = (row("a", dict(enumerate(losses))), row("b", dict.fromkeys(range(5), 1.0)))
    results = {"rules": Results(rows={RowKey("set", "default", one.key.row): one for one in rows})}
    [found] = judge([claim], results)
    assert found.verdict == verdict
    lines = list(csv.DictReader(claims_csv([found]).splitlines()))
    assert tuple(lines[0]) == COLUMNS
    assert [line["verdict"] for line in lines] == ["open", verdict, verdict]
    assert float(lines[2]["effect"]) == pytest.approx(1 - fmean(losses), rel=1e-3)


def test_a_claim_without_rows_is_open() -> None:
    claim = PaperClaim("paper", "R9", "a beats b", contrasts=[Contrast("rules", "set/default", "a", "b", "loss")])
    [found] = judge([claim], {"rules": Results()})
    assert (found.verdict, next(csv.DictReader(claims_csv([found]).splitlines()))["n"]) == ("open", "")


@pytest.mark.parametrize("page", MARKED_PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_marked_sentences_have_the_verdict_of_the_table(page: Path) -> None:
    found = verdicts()
    marks = MARK.findall(page.read_text("utf-8"))
    assert marks == [(name, beyond, found[name, beyond.strip() or "paper"]) for name, beyond, _ in marks]


def test_sentences_on_a_papers_result_are_marked() -> None:
    unmarked = [
        f"{page.relative_to(ROOT)}: {item.strip()[:80]}"
        for page in pages()
        if page.parent == RESULTS or page == ROOT / "README.md"
        for item in ITEM.split(prose(page))
        if NAMES.search(item) and COMPARED.search(item) and not MARK.search(item) and not item.startswith("|")
    ]
    assert unmarked == []
