"""Results page of the robustness study, made from stored results alone."""

from collections.abc import Iterator

from studies.harness.claim import Claim, bullet_list
from studies.harness.results import Results
from studies.harness.table import Table
from studies.robustness import prose
from studies.robustness.cases import (
    ASSUMED,
    ATTACKS,
    CLIENTS,
    FLIPPED,
    HONEST,
    PARTS,
    RULES,
    SCALED,
    SEEDS,
    SETTINGS,
    SHARES,
    UNBOUNDED,
    WITHIN,
    percent,
)
from studies.robustness.figures import HARMFUL, Figures

ALL = (*RULES, UNBOUNDED)
SMALL_LOSS = 5.0  # points of HR@20 that a rule may cost without attackers


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    figures = Figures(results)
    yield prose.INTRODUCTION.format(
        made_by=made_by,
        runs=figures.runs,
        minutes=sum(sum(row.about.seconds.values()) for row in results.rows.values()) / 60,
        clients=CLIENTS,
        seeds=SEEDS,
        assumed=percent(ASSUMED),
        **{task: setting.rounds for task, setting in SETTINGS.items()},
    )
    if not figures.runs:
        return
    yield prose.DISAPPOINTS.format(findings=bullet_list(map(str, findings(figures))))
    yield prose.QUALITY
    for task in SETTINGS:
        yield f"### {task.capitalize()}\n\n{_qualities(figures, task)}"
    yield f"{prose.NAMES}\n\n{_names(figures)}"
    yield f"{prose.PARTS}\n\n{_parts(figures)}"
    yield f"{prose.COST}\n\n{_costs(figures)}"


def findings(figures: Figures) -> Iterator[Claim]:
    """Yield what the study shows, with the figures."""
    for rule in (rule for rule in RULES if rule != "none"):
        kept = {
            task: (figures.quality(task, SCALED, "none", 0.0), figures.quality(task, SCALED, rule, 0.0))
            for task in SETTINGS
        }
        text = "; ".join(f"{task} {mean:.1f} to {robust:.1f}" for task, (mean, robust) in kept.items())
        holds = all(mean - robust <= SMALL_LOSS for mean, robust in kept.values())
        yield Claim(f"Without attackers, `{rule}` costs at most {SMALL_LOSS:.0f} points of HR@20 ({text})", holds)
    for rule in RULES:
        worst = {task: figures.worst(task, rule, min(SHARES)) for task in SETTINGS}
        text = "; ".join(f"{task} {quality:.1f} by {ATTACKS[attack]}" for task, (quality, attack) in worst.items())
        holds = all(figures.quality(t, SCALED, "none", 0.0) - worst[t][0] <= SMALL_LOSS for t in SETTINGS)
        yield Claim(
            f"With 10 % attackers, `{rule}` stays within {SMALL_LOSS:.0f} points of the honest mean ({text})", holds
        )
    for attack in (SCALED, WITHIN, FLIPPED):
        counts = [figures.named(attack, share) for share in SHARES]
        named, attackers = (sum(column) for column in zip(*counts, strict=True))
        yield Claim(f"Attackers by {ATTACKS[attack]} are named ({named} of {attackers})", named == attackers)
    mistaken = figures.total("mistaken")
    yield Claim(f"No honest client is named by mistake ({mistaken} in {figures.runs} runs)", mistaken == 0)
    shown = {task: (figures.quality(task, SCALED, "none", 0.0), figures.shown(task, min(SHARES))) for task in SETTINGS}
    text = "; ".join(f"{task} {value:.0f}" for task, (_, value) in shown.items())
    yield Claim(
        f"A run shows true metrics where two of 20 clients send false ones (HR@20 {text})",
        all(abs(value - honest) <= 2 * SMALL_LOSS for honest, value in shown.values()),
    )
    taken = figures.total("taken_back")
    yield Claim(f"A step that harms the model is taken back ({taken} in {figures.runs} runs)", taken > 0)


def _qualities(figures: Figures, task: str) -> Table:
    rows = [["none", "0", *(figures.cell(task, SCALED, rule, 0.0) for rule in ALL)]]
    for attack in HARMFUL:
        for share in SHARES:
            rows.append([ATTACKS[attack], percent(share), *(figures.cell(task, attack, rule, share) for rule in ALL)])
    return Table(["attack", "attackers", *(f"`{rule}`" for rule in ALL)], rows)


def _names(figures: Figures) -> Table:
    header = ["attack", *(f"{task}, {percent(share)}" for task in SETTINGS for share in SHARES), "honest clients named"]
    rows = [["none", *[""] * (len(header) - 2), str(figures.mistaken(HONEST))]]
    for attack, title in ATTACKS.items():
        cells = ["{} of {}".format(*figures.named(attack, share, task)) for task in SETTINGS for share in SHARES]
        rows.append([title, *cells, str(figures.mistaken(attack))])
    return Table(header, rows)


def _parts(figures: Figures) -> Table:
    share = min(SHARES)
    rows = [["nothing", *(figures.cell("rules", SCALED, rule, 0.0) for rule in RULES)]]
    rows += [[title, *(figures.cell("rules", part, rule, share) for rule in RULES)] for part, title in PARTS.items()]
    return Table(["false", *(f"`{rule}`" for rule in RULES)], rows)


def _costs(figures: Figures) -> Table:
    return Table(
        ["task", *(f"`{rule}`" for rule in RULES)],
        [[task, *(f"{figures.cost(task, rule):.1f}" for rule in RULES)] for task in SETTINGS],
    )
