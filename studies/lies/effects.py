"""Section of the page on adaptive and targeted liars, and its figures, from stored results alone."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from common.text import count
from studies.harness.claim import Claim, bullet_list
from studies.harness.results import Results
from studies.harness.row import Trial
from studies.harness.table import Table
from studies.lies import prose
from studies.lies.effect_cases import (
    ALL_RULES,
    ATTACKS,
    PILOT_ATTACKS,
    PILOT_RULES,
    PILOT_SEEDS,
    PREFIX,
    SEEDS,
    SETTINGS,
    SHARES,
    TARGETED,
    UNCHECKED,
    Case,
    all_cases,
    pilot_cases,
)

DEFAULT = "ridge"
TOLERANCE, MOST_SHARE, MOST_TARGET, MOST_TIME = 0.03, 0.2, 2.0, 1.1
"""Accepted loss as a share of quality; share of liars; factors on the target's rate, on time."""


@dataclass(frozen=True)
class Effect:
    """Effect of a case, as a mean over seeds.

    Args:
        case: The case.
        quality: Quality of the honest clients without liars.
        loss: Loss of it with liars; negative if better.
        spread: Range of the quality over seeds without liars.
        named: Number of liars that a round line names, over all seeds.
        liars: Number of liars over all seeds.
        aside: Number of replies that were set aside.
        mistaken: Number of honest clients that a round line names.
        targets: Share of lists with the target, without and with liars; none for other attacks.
        seeds: Number of seeds.
    """

    case: Case
    quality: float
    loss: float
    spread: float
    named: int
    liars: int
    aside: int
    mistaken: int
    targets: tuple[float, float] | None
    seeds: int

    @property
    def share(self) -> float:
        """Loss as a share of the quality."""
        return self.loss / abs(self.quality)

    @property
    def holds(self) -> bool:
        """True if the loss is at most one spread and `TOLERANCE`."""
        return self.loss <= self.spread + TOLERANCE * abs(self.quality)

    @property
    def keeps_target(self) -> bool:
        """True if the target is in at most twice as many lists."""
        return self.targets is None or self.targets[1] <= MOST_TARGET * self.targets[0]

    @property
    def cell(self) -> str:
        """Text in the table."""
        loss = (
            f"{100 * self.share:+.1f} %, {self.loss / self.spread:.1f} spreads" if self.spread else f"{self.loss:.3g}"
        )
        text = loss if self.holds else f"**{loss}**"
        if self.targets:
            rates = f"target {100 * self.targets[0]:.1f} to {100 * self.targets[1]:.1f} %"
            text += f"; {rates}" if self.keeps_target else f"; **{rates}**"
        aside = f", {self.aside} replies set aside" * bool(self.aside)
        return f"{text}; {self.named} of {self.liars} named{aside}"


@dataclass(frozen=True)
class Effects:
    """Effects of all cases that were run.

    Args:
        results: Stored results.
    """

    results: Results

    def of(self, case: Case) -> Effect | None:
        """Return the effect of a case; None if it was not run."""
        lied, honest = self.results.row(case.key).trials, self.results.row(case.honest.key).trials
        if not (seeds := sorted(lied.keys() & honest.keys())):
            return None
        sign = 1 if SETTINGS[case.task].higher else -1
        losses = [sign * (_quality(case, honest[s], lied[s]) - _quality(case, lied[s])) for s in seeds]
        whole = [_quality(case, trial) for trial in honest.values()]
        names = ("named", "liars", "aside", "mistaken")
        sums = {name: round(sum(lied[s].metrics[name] for s in seeds)) for name in names}
        is_targeted = case.attack in TARGETED.get(case.task, ())
        pair = (fmean(each[s].metrics["target"] for s in seeds) for each in (honest, lied)) if is_targeted else ()
        targets = tuple(pair)
        return Effect(
            case,
            fmean(whole),
            fmean(losses),
            max(whole) - min(whole),
            **sums,
            targets=(targets[0], targets[1]) if targets else None,
            seeds=len(seeds),
        )

    def all(self) -> list[Effect]:
        """Return the effects of all cases with liars."""
        return [found for case in all_cases() if case.liars and (found := self.of(case))]

    def times(self) -> dict[str, float]:
        """Return method and task -> processor time with checks over that without, both without liars."""
        cases = [case for case in all_cases() if case.attack == UNCHECKED]
        rows = {case.title: self.results.row(case.key).values("time") for case in cases}
        return {title: fmean(found.values()) for title, found in rows.items() if found}

    def unchecked(self) -> dict[str, tuple[float, float]]:
        """Return method and task -> quality without checks and with them, both without liars."""
        pairs = {}
        for case in (case for case in all_cases() if case.attack == UNCHECKED):
            without, checked = (self.results.row(one.key).trials for one in (case, case.honest))
            if seeds := without.keys() & checked.keys():
                qualities = (fmean(_quality(case, each[s]) for s in sorted(seeds)) for each in (without, checked))
                pairs[case.title] = (next(qualities), next(qualities))
        return pairs

    def mistaken(self) -> tuple[int, int]:
        """Return the numbers of honest clients that a round line names, and of runs."""
        rows = [row for key, row in self.results.rows.items() if key.set.startswith(PREFIX)]
        return round(sum(sum(row.values("mistaken").values()) for row in rows)), sum(len(row.trials) for row in rows)


def _quality(case: Case, trial: Trial, of: Trial | None = None) -> float:
    """Return the mean metric of a trial's honest clients, or of those of another trial."""
    metric, names = SETTINGS[case.task].metric, (of or trial).clients
    return fmean(one[metric] for name, one in trial.clients.items() if name in names)


def section(results: Results) -> Iterator[str]:
    """Yield the section of the page; nothing without results."""
    effects = Effects(results)
    if not (found := effects.all()):
        return
    sources = bullet_list(
        f"**{task}:** {one.source}, {one.metric}; default `{DEFAULT}`, network `{one.network}`."
        for task, one in SETTINGS.items()
    )
    attacks = bullet_list(f"**{name}:** {words}." for name, words in ATTACKS.items())
    yield prose.EFFECTS.format(seeds=SEEDS, sources=sources, attacks=attacks)
    yield bullet_list(map(str, findings(effects, found)))
    if unreached := [*not_reached(found)]:
        yield f"{prose.NOT_REACHED}\n\n{bullet_list(unreached)}"
    yield prose.EFFECT_TABLE
    yield str(_table(effects))
    if pilot := {case: one for case in pilot_cases() if (one := effects.of(case))}:
        yield prose.PILOT.format(seeds=" and ".join(map(str, PILOT_SEEDS)))
        yield bullet_list(map(str, pilot_findings(pilot)))
        yield str(_pilot_table(pilot))


def findings(effects: Effects, found: Sequence[Effect]) -> Iterator[Claim]:
    """Yield what the runs on real data show, with the figures."""
    up_to = [one for one in found if one.case.share <= MOST_SHARE]

    def claim(text: str, among: Sequence[Effect], holds: Callable[[Effect], bool]) -> Claim:
        held = sum(map(holds, among))
        return Claim(f"{text} ({held} of {len(among)} cases)", held == len(among))

    sums = [one for one in up_to if one.case.method == DEFAULT]
    networks = [one for one in up_to if one.case.method != DEFAULT]
    cost = f"Up to {100 * MOST_SHARE:g} % liars cost at most one seed's spread and {100 * TOLERANCE:g} %"
    yield claim(f"{cost} in the default of each task", sums, lambda one: one.holds)
    yield claim(f"{cost} in networks", networks, lambda one: one.holds)
    targeted = [one for one in up_to if one.targets]
    yield claim("A target is in at most twice as many lists", targeted, lambda one: one.keeps_target)
    yield claim("All liars are named", up_to, lambda one: one.named == one.liars)
    mistaken, runs = effects.mistaken()
    yield Claim(f"No round line names an honest client ({mistaken} in {runs} runs)", mistaken == 0)
    qualities, spreads = effects.unchecked(), {one.case.title: one.spread for one in up_to}
    changes = {title: checked / without - 1 for title, (without, checked) in qualities.items()}
    text = ", ".join(
        f"most: {one} {changes[one]:+.1%}" for one in sorted(changes, key=lambda one: -abs(changes[one]))[:1]
    )
    equal = all(
        abs(without - checked) <= spreads.get(title, math.nan) for title, (without, checked) in qualities.items()
    )
    yield Claim(f"Checks change honest runs by at most one spread ({text})", equal)
    times = effects.times()
    text = ", ".join(f"most: {one} {times[one] - 1:+.0%}" for one in sorted(times, key=lambda one: -times[one])[:1])
    yield Claim(
        f"Checks take at most 10 % of an honest run's processor time ({text})",
        max(times.values(), default=0.0) <= MOST_TIME,
    )
    asked = [case for case in all_cases() if case.liars]
    yield Claim(f"Each case was run ({len(found)} of {len(asked)})", len(found) == len(asked))


def not_reached(found: Sequence[Effect]) -> Iterator[str]:
    """Yield the attacks that cost or show more than the target, by name."""
    missed = [one.case for one in found if one.case.share <= MOST_SHARE and not (one.holds and one.keeps_target)]
    for task, method, attack in dict.fromkeys((case.task, case.method, case.attack) for case in missed):
        shares = [f"{100 * c.share:g}" for c in missed if (c.task, c.method, c.attack) == (task, method, attack)]
        yield f"{attack} by {' and '.join(shares)} % on `{method}`, {task}"


def pilot_findings(pilot: Mapping[Case, Effect]) -> Iterator[Claim]:
    """Yield which rule loses less as a mean over the attacks, and where neither loses much."""
    for task, is_better in (("sessions", True), ("rules", False)):
        losses = {
            rule: [one.share for case, one in pilot.items() if (case.task, case.rule) == (task, rule) and case.liars]
            for rule in ("none", "geometric-median")
        }
        if all(losses.values()):
            mean, median = (fmean(found) for found in losses.values())
            text = (
                f"On `{SETTINGS[task].network}`, {task}, the geometric median loses {'less' if is_better else 'more'}"
            )
            yield Claim(
                f"{text} than the mean ({median:.1%} and {mean:.1%} over the attacks)", (median < mean) == is_better
            )
    for task in (task for task in PILOT_ATTACKS if task not in ALL_RULES):
        found = [abs(one.share) for case, one in pilot.items() if case.task == task]
        if found:
            text = f"On `{SETTINGS[task].network}`, {task}, neither rule loses or wins more than {TOLERANCE:.0%}"
            yield Claim(f"{text} (most: {max(found):.1%})", max(found) <= TOLERANCE)


def _pilot_table(pilot: Mapping[Case, Effect]) -> Table:
    groups = dict.fromkeys(replace(case, rule="none") for case in pilot)
    rows = [
        [
            f"{case.title}: {case.attack}{_few(pilot[case])}",
            *(_share(pilot.get(replace(case, rule=rule))) for rule in PILOT_RULES),
        ]
        for case in groups
    ]
    return Table(["method, task: attack", *PILOT_RULES.values()], rows)


def _few(found: Effect) -> str:
    """Return the number of seeds if some of the pilot are missing."""
    return f" ({count(found.seeds, 'seed')})" * (found.seeds < len(PILOT_SEEDS))


def _share(found: Effect | None) -> str:
    return f"{found.share:+.1%}" if found else ""


def _table(effects: Effects) -> Table:
    cases = [case for case in all_cases() if case.liars]
    groups = dict.fromkeys((case.task, case.method, case.attack) for case in cases)
    rows = [
        [f"`{method}`, {task}: {attack}", *(_cell(effects, Case(task, method, attack, share)) for share in SHARES)]
        for task, method, attack in groups
    ]
    return Table(["method, task: attack", *(f"{100 * share:g} %" for share in SHARES)], rows)


def _cell(effects: Effects, case: Case) -> str:
    found = effects.of(case) if case.liars else None
    return found.cell if found else ""
