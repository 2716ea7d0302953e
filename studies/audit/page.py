"""Page of the audit, made from stored results alone."""

from collections.abc import Iterator

from studies.audit import prose
from studies.audit.bounds import one_run_bound
from studies.audit.cases import CANARIES, CLIENTS, DELTA, FAULTS, MANY, ONE_RUN_SEEDS, SHADOWS, UPLOAD_SEEDS, WAYS
from studies.audit.figures import Figures, audited, share
from studies.harness.claim import Claim, bullet_list
from studies.harness.results import Results
from studies.harness.row import Metrics
from studies.harness.table import Table

TIGHT, TIGHT_SHARE = (2.0, 8.0), 0.7
"""Claimed ε at which an audit must reach that share of the claimed loss."""

PLANNED = "2026-11-27T15:07"
"""Time from which DP-SGD of a plan is charged by PRV."""

NEAR_CHANCE = 0.6
"""AUC up to which guesses of membership are near chance, 0.5: two standard deviations of one seed."""


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    figures = Figures(results)
    yield prose.INTRODUCTION.format(made_by=made_by, findings=bullet_list(map(str, findings(figures))))
    if not results.rows:
        return
    guesses = round(figures.one_runs[0][1][0]["guesses"])
    yield f"{prose.CLIENT.format(many=MANY, both=2 * MANY)}\n\n{_sound(figures)}"
    yield f"{prose.FAULTS}\n\n{_faulty(figures)}"
    record = prose.RECORD.format(canaries=CANARIES, seeds=ONE_RUN_SEEDS)
    if days := results.days_before(PLANNED, (row for key, row in results.rows.items() if key.set == "record")):
        record += prose.OLD.format(days=", ".join(days))
    yield f"{record}\n\n{_one_runs(figures)}"
    yield f"{prose.UPLOADS.format(clients=CLIENTS, seeds=UPLOAD_SEEDS)}\n\n{_uploads(figures)}"
    if figures.members:
        about = prose.MEMBERS.format(clients=CLIENTS, shadows=SHADOWS, seeds=UPLOAD_SEEDS)
        yield f"{about}\n\n{_members(figures)}"
    if figures.opened:
        yield f"{prose.OPENED.format(clients=CLIENTS, seeds=UPLOAD_SEEDS)}\n\n{_opened(figures)}"
    yield prose.LIMITS.format(canaries=CANARIES, guesses=guesses, most=one_run_bound(guesses, guesses, CANARIES, DELTA))


def findings(figures: Figures) -> Iterator[Claim]:
    """Yield what the audit shows, with the figures."""
    sound, faulty = figures.sound, figures.faulty
    if sound:
        shares = [share(metrics) for _, metrics in sound]
        yield Claim(
            f"The audited loss is at most the claimed one for every way and ε (at most {max(shares):.2f} of it)",
            max(shares) <= 1,
        )
        tight = {f"{WAYS[c.way]} {c.epsilon:g}": share(m) for c, m in sound if c.epsilon in TIGHT and c.rounds == 1}
        text = "; ".join(f"{name} {value:.2f}" for name, value in tight.items())
        yield Claim(
            f"It is at least {TIGHT_SHARE:g} of the claimed one at ε = 2 and 8 ({text})",
            min(tight.values()) >= TIGHT_SHARE,
        )
    if faulty:
        caught = sum(share(metrics) > 1 for _, metrics in faulty)
        yield Claim(f"Every deliberate fault is detected ({caught} of {len(faulty)})", caught == len(faulty))
    for run, trials in figures.one_runs:
        most = max(metrics["audited_epsilon"] for metrics in trials)
        if run.fault:
            text = f"DP-SGD without its noise at ε = {run.epsilon:g} is detected (bound {audited(trials):.2f})"
            yield Claim(text, audited(trials) > run.epsilon)
        else:
            sampled = f", q = {run.sample:g}, {run.rounds} rounds" if run.rounds > 1 else ""
            text = f"DP-SGD at ε = {run.epsilon:g}{sampled}: no training gives a larger bound (at most {most:.2f})"
            yield Claim(text, most <= run.epsilon)

    for upload, read, popular in figures.uploads:
        text = f"Updates ({upload.title}): an attack reads no more than popularity guesses ({_percent(read, popular)})"
        yield Claim(text, read <= popular)

    for upload, area, _ in figures.members:
        text = f"Updates ({upload.title}): membership of a session is guessed with an AUC of at most {NEAR_CHANCE:g}"
        yield Claim(f"{text} ({area:.2f})", area <= NEAR_CHANCE)

    for case, found in figures.opened:
        text = f"Opened sums ({case.title}): half of a home's triples show no more of the others than popularity"
        yield Claim(
            f"{text} ({_percent(found['precision'], found['popularity'])})", found["precision"] <= found["popularity"]
        )


def _sound(figures: Figures) -> Table:
    header = ["way", "ε", "rounds", "runs a side", "TPR", "FPR", "claimed", "audited", "share", "as ε", "audited ε"]
    rows = [
        [WAYS[case.way], f"{case.epsilon:g}", str(case.rounds), *_counts(metrics), *_losses(metrics)]
        for case, metrics in figures.sound
    ]
    return Table(header, rows)


def _faulty(figures: Figures) -> Table:
    header = ["fault", "way", "runs a side", "TPR", "FPR", "claimed", "audited", "share", "as ε", "audited ε"]
    rows = [
        [FAULTS[case.fault], WAYS[case.way], *_counts(metrics), *_losses(metrics)] for case, metrics in figures.faulty
    ]
    return Table(header, rows)


def _counts(metrics: Metrics) -> list[str]:
    trials = metrics["trials"]
    return [f"{trials:,.0f}", f"{metrics['hits'] / trials:.3f}", f"{metrics['alarms'] / trials:.3f}"]


def _losses(metrics: Metrics) -> list[str]:
    cells = [f"{metrics['claimed']:.3f}", f"{metrics['audited']:.3f}", f"{share(metrics):.2f}"]
    return [*cells, f"{metrics['claimed_epsilon']:.2f}", f"{metrics['audited_epsilon']:.2f}"]


def _one_runs(figures: Figures) -> Table:
    rows = []
    for run, trials in figures.one_runs:
        right = ", ".join(f"{metrics['right']:.0f}" for metrics in trials)
        cells = ["none" if run.fault else "as claimed", f"{run.sample:g}", str(run.rounds), f"{run.epsilon:g}"]
        rows.append([*cells, f"{trials[0]['guesses']:.0f}", right, f"{audited(trials):.2f}"])
    return Table(["noise", "q", "rounds", "claimed ε", "guesses", "right", "audited ε, median"], rows)


def _uploads(figures: Figures) -> Table:
    rows = [[u.title, f"{100 * read:.1f}", f"{100 * popular:.1f}"] for u, read, popular in figures.uploads]
    return Table(["names, updates", "attack, %", "popularity, %"], rows)


def _members(figures: Figures) -> Table:
    rows = [[u.title, f"{area:.2f}", f"{100 * rate:.0f}"] for u, area, rate in figures.members]
    return Table(["update", "AUC", "TPR at FPR 1 %, %"], rows)


def _opened(figures: Figures) -> Table:
    rows = [
        [
            case.title,
            f"{found['auc']:.2f}",
            *(f"{100 * found[name]:.1f}" for name in ("tpr", "precision", "popularity")),
        ]
        for case, found in figures.opened
    ]
    return Table(["opened sum", "AUC", "TPR at FPR 1 %, %", "other triples read, %", "popularity, %"], rows)


def _percent(read: float, popular: float) -> str:
    return f"{100 * read:.1f} against {100 * popular:.1f} %"
