"""Claims of the papers, judged by the stored rows: `claims.csv` and `claims.md`."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from studies.harness.contrast import Contrast, Finding
from studies.harness.plan import missing_runs, price_of_seeds
from studies.harness.results import Results
from studies.harness.statistics import SEEDS, Verdict, combined, holm
from studies.harness.table import Table

COLUMNS = ("paper", "id", "claim", "where", "verdict", "effect", "low", "high", "n", "evidence", "deviation")


@dataclass(frozen=True)
class PaperClaim:
    """A claim of a paper.

    Args:
        paper: Short name of the paper's method.
        id: Letter of the paper and number.
        text: The claim.
        contrasts: Comparisons that decide it; the claim needs all of them.
        deviation: In which respect our test differs.
        lacks: What has to be measured before the claim can be confirmed.
        not_testable: Reason why it cannot be tested here.
    """

    paper: str
    id: str
    text: str
    contrasts: Sequence[Contrast] = ()
    deviation: str = ""
    lacks: str = ""
    not_testable: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim with its findings.

    Args:
        claim: The claim.
        findings: One for each contrast.
        price: What more seeds would cost.
    """

    claim: PaperClaim
    findings: Sequence[Finding]
    price: str = ""

    @property
    def verdict(self) -> Verdict:
        """Worst verdict of the findings; open while something has to be measured."""
        if self.claim.not_testable:
            return "not-testable"
        missing: list[Verdict] = ["open"] if self.claim.lacks else []
        return combined([*(one.verdict for one in self.findings), *missing])

    @property
    def reason(self) -> str:
        """Missing measurements, the price of more seeds, and in which respect our test differs."""
        claim, price = self.claim, self.price if self.verdict == "open" else ""
        return claim.not_testable or "; ".join(filter(None, (claim.lacks, price, claim.deviation)))

    def lines(self) -> Iterator[tuple[str, ...]]:
        """Yield the claim's line of `claims.csv`, then one for each finding."""
        claim = self.claim
        about = (claim.paper, claim.id, claim.text)
        yield *about, "", self.verdict, "", "", "", "", "", self.reason
        for one in self.findings:
            yield *about, one.contrast.where, one.verdict, *_numbers(one), one.contrast.evidence, one.remark


def judge(claims: Sequence[PaperClaim], results: Mapping[str, Results]) -> list[Judged]:
    """Judge all claims; Holm's correction is over the measured comparisons of a paper."""
    found = {
        id(one): Finding(one, one.paired(results), one.seconds(results)) for claim in claims for one in claim.contrasts
    }
    for paper in {claim.paper for claim in claims}:
        family = [one for claim in claims if claim.paper == paper for one in claim.contrasts if found[id(one)].paired]
        for one, value in zip(family, holm(found[id(one)].p_value for one in family), strict=True):
            found[id(one)] = found[id(one)].with_corrected(value)
    return [_with_price(claim, [found[id(one)] for one in claim.contrasts], results) for claim in claims]


def _with_price(claim: PaperClaim, findings: Sequence[Finding], results: Mapping[str, Results]) -> Judged:
    return Judged(claim, findings, price_of_seeds(findings, missing_runs(claim.contrasts, results)))


def claims_csv(judged: Sequence[Judged]) -> str:
    """Return the content of `claims.csv`."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(line for one in judged for line in one.lines())])
    return file.getvalue()


def claims_page(judged: Sequence[Judged]) -> str:
    """Return the content of `claims.md`."""
    counted = Counter(one.verdict for one in judged)
    shown = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counted.items()))
    sections = [
        "# Claims of the papers",
        f"**Verdict.** Of {len(judged)} claims: {shown}.",
        f"""Made by `python -m studies claims` from the stored runs; the numbers are in [claims.csv](claims.csv).
Differences are paired by seed, positive where the first row is better; shares of the second row's error for MSE. Intervals are
at 90 %, corrected for splits drawn again (Nadeau and Bengio 2003).

- **confirmed**: above zero at 95 % after Holm's correction over the paper, and at least the smallest effect of interest.
- **level**: the interval lies within ± that effect.
- **refuted**: the interval ends below it.
- **open**: neither, fewer than {SEEDS} seeds, or not measured.
- **not-testable**: the data are not public or not here, or no run could refute the claim.

A claim has the worst verdict of its comparisons.""",
        *(_section(paper, judged) for paper in dict.fromkeys(one.claim.paper for one in judged)),
    ]
    return "\n\n".join(sections) + "\n"


def _section(paper: str, judged: Sequence[Judged]) -> str:
    own = [one for one in judged if one.claim.paper == paper]
    lines = [f"## {paper}", "", "| claim | verdict | remarks |", "| --- | --- | --- |"]
    lines += [f"| {one.claim.id}: {one.claim.text} | **{one.verdict}** | {one.reason} |" for one in own]
    rows = [_cells(one.claim.id, finding) for one in own for finding in one.findings]
    table = Table(("claim", "rows", "where", "verdict", "effect", "90 % interval", "seeds"), rows)
    return "\n".join([*lines, "", str(table)])


def _cells(name: str, one: Finding) -> tuple[str, ...]:
    effect, low, high, n = _numbers(one)
    interval = f"{low} to {high}" if low else ""
    cells = (effect, interval, n)
    return name, one.contrast.evidence, one.contrast.where, one.verdict, *(cell.replace("-", "−") for cell in cells)


def _numbers(one: Finding) -> tuple[str, str, str, str]:
    """Return effect, both ends of the interval and number of seeds."""
    if one.paired is None:
        return "", "", "", "0"
    low, high = (f"{end:+.4g}" if isfinite(end) else "" for end in one.paired.interval(0.9))
    return f"{one.paired.mean:+.4g}", low, high, str(len(one.paired.differences))
