"""The results page as Markdown."""

from collections.abc import Iterable, Sequence
from statistics import stdev

from benchmarks.sessions.study import Row, Study
from benchmarks.studies import markdown

INTRODUCTION = """# Session recommendation: what the methods do on real clicks

{made_by}

One client a user or a group of sessions; SR-GNN with d = 48; one full-batch SGD step a client and round (rate 1, gradient
norm at most 5), clients weighted by their examples, one seeded cohort a round. ηₛ and τ are chosen per method by HR@20 on
validation cases of a seed that is not reported; every reported seed draws split, cohorts and weights anew. All metrics rank
all items. `saturated`, `ramp` and `quadratic` are readings of FedGA's second moment, whose equation is not public: no row is
"FedGA as published". MB count both ways, and the evaluations by all clients every tenth or twentieth round. The *lines* need
no network, some of them not even a federation. They stand here because a method has to be worth more than they are. Wall times
are of a shared machine, on which some runs stood still for minutes: they compare nothing."""

COLUMNS = ("hr10", "hr20", "mrr10", "mrr20", "ndcg20")


def page(studies: Sequence[Study], made_by: str) -> str:
    """The whole page; `made_by` says how and with what it was made."""
    parts = [INTRODUCTION.format(made_by=made_by)]
    for study in studies:
        parts += _set(study)
    return "\n\n".join(parts) + "\n"


def _set(study: Study) -> Iterable[str]:
    setting = study.setting
    yield f"## {setting.title}"
    cooling = f"; ηₛ falls to zero over the last {setting.cooldown:.0%} of them" if setting.cooldown else ""
    yield (
        f"{setting.about} {study.clients:,} clients, {study.sessions:,} sessions, {study.items:,} items, mean pairwise "
        f"Jaccard distance of clients' item sets {study.jaccard:.3f}; "
        f"{setting.clients_a_round} clients a round, {setting.rounds} rounds{cooling}."
    )
    header = [
        "method",
        "chosen",
        "seeds",
        "HR@10",
        "HR@20",
        "MRR@10",
        "MRR@20",
        "NDCG@20",
        "rounds to 95 %",
        "MB to 95 %",
    ]
    yield markdown([*header, "s a run"], [_measured(row) for row in study.rows])
    if study.absent:
        yield f"Not run yet: {', '.join(study.absent)}."
    yield from _shares(study)
    yield from _duels(study)
    yield "### What was tuned"
    tuned = [row for row in study.rows if row.grid]
    points = [[r.title, "; ".join(f"{p}: {_percent(hr)}" for p, hr in r.grid.items())] for r in tuned]
    yield markdown(["method", "validation HR@20 by point"], points)
    yield "What has no line here takes FedGA's point."


def _shares(study: Study) -> Iterable[str]:
    """How near to central training the best federated methods come."""
    rows = {row.key: row for row in study.rows}
    if {"central", "fedga"} <= rows.keys():
        best = rows["central"].mean("hr20")
        adaptive = [rows[key] for key in ("fedga", "fedyogi", "fedadam") if key in rows]
        said = ", ".join(f"{row.title} {row.mean('hr20') / best:.1%}" for row in adaptive)
        yield f"Of the central network's HR@20: {said}."


def _duels(study: Study) -> Iterable[str]:
    """FedGA against every other server optimiser, paired by seed."""
    rows = {row.key: row for row in study.rows}
    if "fedga" not in rows:
        return
    ours = rows["fedga"]
    others = [rows[key] for key in ("fedavg", "fedavgm", "fedprox", "fedadam", "fedyogi", "csme") if key in rows]
    yield "### FedGA (`saturated`) against the others, paired by seed"
    yield markdown(["against", "HR@20, points", "seeds better", "rounds to 95 %"], [_duel(ours, row) for row in others])


def _duel(ours: Row, other: Row) -> list[str]:
    seeds = sorted(ours.seeds.keys() & other.seeds.keys())
    gains = [100 * (ours.seeds[s]["hr20"] - other.seeds[s]["hr20"]) for s in seeds]
    rounds = f"{ours.rounds_to(0.95):.0f} against {other.rounds_to(0.95):.0f}"
    mean = sum(gains) / len(gains)
    return [other.title, f"{mean:+.1f}", f"{sum(gain > 0 for gain in gains)} of {len(seeds)}", rounds]


def _measured(row: Row) -> list[str]:
    rounds = row.rounds_to(0.95)
    megabytes = f"{rounds * row.megabytes_a_round:.0f}" if rounds else ""
    seconds = f"{row.seconds:.0f}" if row.seconds else ""
    cells = [_spread(row, metric) for metric in COLUMNS]
    return [row.title, row.point, str(len(row.seeds)), *cells, f"{rounds:.0f}" if rounds else "", megabytes, seconds]


def _spread(row: Row, metric: str) -> str:
    values = [seed[metric] for seed in row.seeds.values()]
    spread = f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * row.mean(metric):.1f}{spread}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if share >= 0 else "does not train"
