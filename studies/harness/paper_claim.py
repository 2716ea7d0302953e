"""Claims of the papers, judged by the stored rows under two protocols: `claims.csv` and `claims.md`."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from studies.harness.contrast import Contrast, Finding
from studies.harness.paper_effects import Agreement, Compared, Reported, agreement_of
from studies.harness.plan import missing_runs, price_of_seeds
from studies.harness.results import Results
from studies.harness.statistics import SEEDS, Paired, Verdict, combined, holm
from studies.harness.table import Table

COLUMNS = (
    *("paper", "id", "claim", "protocol", "where", "verdict", "reported", "effect", "low", "high", "n"),
    *("evidence", "deviation"),
)


@dataclass(frozen=True)
class PaperClaim:
    """A claim of a paper.

    Args:
        paper: Short name of the paper's method.
        id: Letter of the paper and number.
        text: The claim.
        reported: Its effects in the paper, with our comparisons under the paper's protocol.
        contrasts: Comparisons beyond it: other data, equal tuning, stronger rivals.
        deviation: In which respect our test differs.
        lacks: What has to be measured before the claim can be judged.
        not_testable: Reason why it cannot be tested here.
    """

    paper: str
    id: str
    text: str
    reported: Sequence[Reported] = ()
    contrasts: Sequence[Contrast] = ()
    deviation: str = ""
    lacks: str = ""
    not_testable: str = ""

    @property
    def needed(self) -> tuple[Contrast, ...]:
        """All comparisons that need rows."""
        return *(one for effect in self.reported for one in effect.contrasts), *self.contrasts


@dataclass(frozen=True)
class Judged:
    """A claim with what was found.

    Args:
        claim: The claim.
        compared: One for each reported effect.
        findings: One for each contrast.
        price: What more seeds would cost.
    """

    claim: PaperClaim
    compared: Sequence[Compared]
    findings: Sequence[Finding]
    price: str = ""

    @property
    def agreement(self) -> Agreement:
        """Verdict under the paper's protocol."""
        return "not-testable" if self.claim.not_testable else agreement_of(self.compared)

    @property
    def verdict(self) -> Verdict:
        """Verdict beyond it: the worst of the findings; open while something has to be measured."""
        if self.claim.not_testable:
            return "not-testable"
        missing: list[Verdict] = ["open"] if self.claim.lacks else []
        return combined([*(one.verdict for one in self.findings), *missing])

    @property
    def counts(self) -> str:
        """Number of reported effects by agreement, where they differ: `2 reproduced, 1 larger`."""
        counted = Counter(one.agreement for one in self.compared)
        return ", ".join(f"{number} {name}" for name, number in counted.items()) if len(counted) > 1 else ""

    @property
    def reason(self) -> str:
        """Missing measurements, the price of more seeds, and in which respect our test differs."""
        claim, price = self.claim, self.price if self.verdict == "open" else ""
        return claim.not_testable or "; ".join(filter(None, (claim.lacks, price, claim.deviation)))

    def lines(self) -> Iterator[tuple[str, ...]]:
        """Yield two lines of `claims.csv` on the claim, one a protocol, then one for each effect and finding."""
        claim = self.claim
        about = (claim.paper, claim.id, claim.text)
        yield *about, "paper", "", self.agreement, *[""] * 6, self.reason
        yield *about, "beyond", "", self.verdict, *[""] * 6, self.reason
        for one in self.compared:
            said, rows = _signed(one.reported.effect), one.reported.contrasts[0].evidence
            numbers = _numbers(one.paired)
            yield *about, "paper", one.reported.where, one.agreement, said, *numbers, rows, one.reported.source
        for found in self.findings:
            contrast, numbers = found.contrast, _numbers(found.paired)
            yield *about, "beyond", contrast.where, found.verdict, "", *numbers, contrast.evidence, found.remark


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
    compared = [Compared(one, one.paired(results)) for one in claim.reported]
    return Judged(claim, compared, findings, price_of_seeds(findings, missing_runs(claim.needed, results)))


def claims_csv(judged: Sequence[Judged]) -> str:
    """Return the content of `claims.csv`."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(line for one in judged for line in one.lines())])
    return file.getvalue()


def claims_page(judged: Sequence[Judged]) -> str:
    """Return the content of `claims.md`."""
    counted = Counter(one.agreement for one in judged)
    shown = ", ".join(f"{number} {agreement}" for agreement, number in sorted(counted.items()))
    effects = [effect for one in judged for effect in one.compared if effect.paired]
    agreeing = sum(effect.agreement == "reproduced" for effect in effects)
    sections = [
        "# Claims of the papers",
        f"""**Verdict.** Of {len(judged)} claims, as their papers state them: {shown}.
Of {len(effects)} measured effects of their tables, figures and texts, {agreeing} are reproduced.""",
        f"""Made by `python -m studies claims` from the stored runs; the numbers are in [claims.csv](claims.csv).

**Under the paper's protocol**: its data or the nearest that are here, its metric, its rivals as it ran them. Effects are shares
of the second row's value, means over data sets; of ρ, differences. Positive is better for the first row.

- **reproduced**: sign and size agree with the paper's. Sizes do if one is at most twice the other, or if the paper's
  lies in our 90 % interval. Where it states no number, the interval must lie on its side.
- **larger**: the sign agrees. **smaller**: so it does, or the interval includes zero and ends below half of the paper's effect.
- **refuted**: the interval is on the other side. **in part**: effects differ.
- **open**: none of these, fewer than {SEEDS} seeds, or not measured.

**Beyond it**: other data, equal tuning and stronger rivals. Differences are paired by seed; of MSE, shares. Intervals are at
90 %, corrected for splits drawn again (Nadeau and Bengio 2003).

- **holds**: above zero at 95 % after Holm's correction over the paper, and at least the smallest effect of interest.
- **level**: the interval lies within ± that effect. **fails**: it ends below it. **open**: neither.
- **not-testable**: the data are not public or not here, or no run could refute the claim.""",
        *(_section(paper, judged) for paper in dict.fromkeys(one.claim.paper for one in judged)),
    ]
    return "\n\n".join(sections) + "\n"


def _section(paper: str, judged: Sequence[Judged]) -> str:
    own = [one for one in judged if one.claim.paper == paper]
    lines = [f"## {paper}", "", "| claim | paper's protocol | beyond | remarks |", "| --- | --- | --- | --- |"]
    for one in own:
        beyond = one.verdict if one.findings else "–"
        counts = f" ({one.counts})" if one.agreement == "in part" else ""
        lines.append(f"| {one.claim.id}: {one.claim.text} | **{one.agreement}**{counts} | {beyond} | {one.reason} |")
    effects = [_effect_cells(one.claim.id, effect) for one in own for effect in one.compared]
    titles = (
        "claim",
        "paper: where",
        "here: rows",
        "sets and metric",
        "paper",
        "here",
        "90 % interval",
        "seeds",
        "verdict",
    )
    found = [_cells(one.claim.id, finding) for one in own for finding in one.findings]
    beyond_titles = ("claim", "rows", "where", "verdict", "effect", "90 % interval", "seeds")
    tables = [str(Table(titles, effects)) if effects else "", str(Table(beyond_titles, found)) if found else ""]
    return "\n".join([*lines, "", "\n\n".join(filter(None, tables))]).rstrip()


def _effect_cells(name: str, one: Compared) -> tuple[str, ...]:
    effect, low, high, n = _numbers(one.paired)
    said = _signed(one.reported.effect) or "sign"
    numbers = (said, effect, f"{low} to {high}" if low else "", n)
    rows = " ".join(dict.fromkeys(contrast.evidence for contrast in one.reported.contrasts))
    shown = (cell.replace("-", "−") for cell in numbers)
    return name, one.reported.source, rows, one.reported.where, *shown, one.agreement


def _cells(name: str, one: Finding) -> tuple[str, ...]:
    effect, low, high, n = _numbers(one.paired)
    interval = f"{low} to {high}" if low else ""
    cells = (effect, interval, n)
    return name, one.contrast.evidence, one.contrast.where, one.verdict, *(cell.replace("-", "−") for cell in cells)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.4g}"


def _numbers(paired: Paired | None) -> tuple[str, str, str, str]:
    """Return effect, both ends of the interval and number of seeds."""
    if paired is None:
        return "", "", "", "0"
    low, high = (_signed(end) if isfinite(end) else "" for end in paired.interval(0.9))
    return _signed(paired.mean), low, high, str(len(paired.differences))
