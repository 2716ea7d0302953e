"""Page of the study of privacy noise, made from stored results alone."""

from collections.abc import Callable, Iterator, Mapping

from studies.harness.claim import Claim, bullet_list
from studies.harness.results import Results
from studies.harness.table import Table
from studies.privacy import prose
from studies.privacy.cases import EPSILONS, NO_NOISE, PROTECTIONS, PROTOCOL, SEEDS, SETTINGS, Protection
from studies.privacy.figures import Figures, Point, number
from studies.privacy.signal import section

GAUSSIAN = "2026-11-27T11:59"
"""Time from which Gaussian noise is charged by Gaussian DP."""


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    yield prose.INTRODUCTION.format(made_by=made_by, seeds=SEEDS)
    for figures in measured(results):
        yield from _task(figures)
    yield from section(results)
    noised = (row for key, row in results.rows.items() if key.protocol == PROTOCOL and key.row != NO_NOISE)
    days = results.days_before(GAUSSIAN, noised)
    yield f"{prose.LIMITS}\n{prose.OLD.format(first=days[0], last=days[-1])}" if days else prose.LIMITS


def measured(results: Results) -> Iterator[Figures]:
    """Yield the figures of the tasks that were run."""
    for setting in SETTINGS:
        figures = Figures(results, setting)
        if figures.no_noise:
            yield figures


def claim_of(figures: Figures) -> Claim:
    """Return the claim that the default model is never below its floor, with the points where it is."""
    return _claim("The default model is never below its floor", figures, figures.below(), lambda one: one.gain)


def used_claim_of(figures: Figures) -> Claim:
    """Return the claim that what clients use is never below the floor, with the points where it is."""
    below = figures.used_below()
    return _claim("What clients use is never below the floor", figures, below, lambda one: one.used_gain)


def _claim(
    bound: str, figures: Figures, below: Mapping[Protection, list[Point]], gain: Callable[[Point], float]
) -> Claim:
    bound = f"{bound} by more than {figures.setting.smallest:g} of {figures.setting.measure}"
    where = "; ".join(
        f"{PROTECTIONS[p]}, {_at(points)} by up to {number(min(map(gain, points)), '+')}" for p, points in below.items()
    )
    return Claim(f"{bound} ({where})" if where else bound, not below)


def _at(points: list[Point]) -> str:
    return f"at ε = {', '.join(f'{one.epsilon:g}' for one in points)}"


def _choice(figures: Figures) -> Iterator[str]:
    """Yield the claim on what clients use, and where it was not measured; nothing without a choice."""
    if not figures.setting.validation:
        return
    missing = figures.unmeasured()
    if sum(map(len, missing.values())) < sum(map(len, figures.noised.values())):
        yield str(used_claim_of(figures))
    if missing:
        where = "; ".join(f"{PROTECTIONS[p]}, {_at(points)}" for p, points in missing.items())
        yield f"What clients use was not measured for {where}."


def _task(figures: Figures) -> Iterator[str]:
    setting, exact = figures.setting, figures.no_noise
    assert exact is not None  # a task without this row is left out
    yield f"## {setting.task.capitalize()}\n\n{prose.TASKS[setting.task].format(people=setting.people)}"
    cells = ["no noise", *[""] * len(EPSILONS), _cell(exact)]
    rows = [[PROTECTIONS[p], *_line(points), ""] for p, points in figures.noised.items()]
    floor = [f"floor: {setting.floor_name}", *[""] * len(EPSILONS), f"{figures.floor:.3f}"]
    yield str(Table([setting.measure, *(f"ε = {e:g}" for e in EPSILONS), "no noise"], [cells, *rows, floor]))
    yield bullet_list([str(claim_of(figures)), *_choice(figures), *([setting.without] if setting.without else [])])


def _line(points: list[Point]) -> list[str]:
    found = {one.epsilon: _cell(one) for one in points}
    return [found.get(epsilon, "not run") for epsilon in EPSILONS]


def _cell(point: Point) -> str:
    spread = f" ± {number(point.deviation)}" if point.seeds > 1 else ""
    model = f"{number(point.mean)}{spread} ({number(point.gain, '+')})"
    if point.used is None or point.used == point.mean:
        return model
    return f"{model}; used {number(point.used)} ({number(point.used_gain, '+')})"
