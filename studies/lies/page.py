"""Results page on lies, made from stored results alone."""

from collections.abc import Callable, Iterator, Sequence

from common.text import count
from studies.harness.claim import Claim, bullet_list
from studies.harness.results import Results
from studies.harness.table import Table
from studies.lies import effects, prose
from studies.lies.cases import (
    CLIENTS,
    GRACE_SECONDS,
    HONEST,
    HONEST_SEEDS,
    LIE_SEEDS,
    LIES,
    ROUNDS,
    SETTINGS,
    USUAL_GRACE_SECONDS,
    Case,
    all_cases,
    all_pairs,
)
from studies.lies.figures import Figures, Outcome

NAMES = tuple(LIES)
MIDDLE = 8
"""Number of lies in the first table."""


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    figures = Figures(results)
    yield prose.INTRODUCTION.format(
        made_by=made_by,
        runs=figures.runs,
        minutes=sum(sum(row.about.seconds.values()) for row in results.rows.values()) / 60,
        clients=CLIENTS,
        rounds=ROUNDS,
        seeds=HONEST_SEEDS,
        lie_seeds=count(LIE_SEEDS, "seed"),
        metrics=", ".join(f"{setting.metric} ({task})" for task, setting in SETTINGS.items()),
    )
    if not figures.runs:
        return
    yield f"## Findings\n\n{bullet_list(map(str, findings(figures)))}"
    lies = bullet_list(f"**{name}:** {words}." for name, words in LIES.items())
    yield prose.LIES.format(lies=lies, grace=GRACE_SECONDS, wait=USUAL_GRACE_SECONDS)
    yield prose.TABLE
    yield from (str(_table(figures, names)) for names in (NAMES[:MIDDLE], NAMES[MIDDLE:]))
    yield from effects.section(results)


def findings(figures: Figures) -> Iterator[Claim]:
    """Yield what the study shows, with the figures."""
    found = [*figures.all()]

    def claim(text: str, holds: Callable[[Outcome], bool]) -> Claim:
        missed = [one.case for one in found if not holds(one)]
        pairs = dict.fromkeys((case.method, case.task) for case in missed)
        lies = {pair: [case.lie for case in missed if (case.method, case.task) == pair] for pair in pairs}
        where = "".join(f"; not {method} on {task}: {', '.join(lies[method, task])}" for method, task in pairs)
        return Claim(f"{text} ({len(found) - len(missed)} of {len(found)} runs{where})", not missed)

    cases, lied = {one.case for one in found}, [case for case in all_cases() if case.lie != HONEST]
    yield Claim(f"Each lie was tried on each method ({len(cases)} of {len(lied)} cases)", len(cases) == len(lied))
    yield claim("The other clients finish all rounds", lambda one: one.finished)
    yield claim("Their model is within one seed's spread of the run without the liar", lambda one: one.within)
    yield claim("A round line names the liar", lambda one: one.named)
    mistaken, stained = figures.honest_named(), figures.stained()
    yield Claim(f"No round line names an honest client ({mistaken} in {figures.runs} runs)", mistaken == 0)
    yield Claim(f"No terminal escape reaches a file of the run ({stained} in {figures.runs} runs)", stained == 0)


def _table(figures: Figures, names: Sequence[str]) -> Table:
    rows = [
        [f"`{method}`, {task}", *(figures.cell(Case(task, method, lie)) for lie in names)]
        for task, method in all_pairs()
    ]
    return Table(["method, task", *names], rows)
