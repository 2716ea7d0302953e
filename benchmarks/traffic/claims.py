"""What is asked of the results, each checked against the figures and stated either way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from benchmarks.traffic.faults import Fault
from benchmarks.traffic.newcomers import Newcomers
from benchmarks.traffic.study import Row

DEFAULT = {"boroondara": 0.0215, "ten": 0.175}
"""MSE that the default model has to reach."""

PROFILE = {"boroondara": 0.0209, "ten": 0.2137}
"""MSE of the weekly profile where that was measured."""

EASIER = 0.9
"""Share of it below which the data are not as hard as they were there."""

COVERAGE = 0.85, 0.97
"""Share of the true windows that calibrated properties have to hold on."""

HARM = 0.01
"""By which share of the student's MSE the teacher may at most be worse."""

CUTS = {"calibrated": 0.30, "weekday": 0.50}
"""Share of a broken sensor's MSE that the teacher has to take away."""

POOLED = 0.75
"""Share of the true days that a newcomer's pooled property has to hold on."""

Known = Mapping[str, Row]


def verdicts(
    setting: str, rows: Known, lines: Known, faults: Sequence[Fault], newcomers: Sequence[Newcomers]
) -> Iterator[str]:
    """One sentence a claim, of those whose rows are there.

    Args:
        setting: Key of the data set.
        rows: Of the tables.
        lines: Kind of property -> what holds without a model.
        faults: Of broken sensors.
        newcomers: Of sensors that come late.
    """
    yield _property_is_true(lines)
    yield from _teacher_harms_nobody(rows)
    yield from _pair(rows, "fedrep-logic", "fedrep", _logic)
    yield from _pair(
        rows,
        "fedstl",
        "fedrep-logic",
        _against("FedSTL against FedPer with λ = 1, equal uploads, half the steps"),
    )
    yield from _pair(rows, "fedstl", "fedstl-one", _against("five clusters against one"))
    yield from _pair(rows, "fedstl", "ifca", _against("FedSTL against IFCA, equal uploads, half the steps"))
    yield from _alike(rows)
    if default := rows.get("default"):
        reached = default.mean("mse")
        profile, explored = lines["calibrated"].mean("profile_mse"), PROFILE[setting]
        easier = f"; easier than it was meant, the profile has {profile:.4f} here and {explored:g} there"
        yield (
            f"Default at most {DEFAULT[setting]:g} of the exploration: {reached:.4f}, {_holds(reached <= DEFAULT[setting])}"
            f"{easier if profile < EASIER * explored else ''}."
        )
        beaten = {
            "weekly profile": "profile_mse",
            "profile + own ridge": "ridge_mse",
            "profile + federated ridge": "mse",
        }
        told = [f"{reached / lines['calibrated'].mean(key) - 1:+.1%} to {line}" for line, key in beaten.items()]
        yield f"MSE of the default: {', '.join(told)}."
        helps = {
            "default-one": "clusters",
            "default-fedavg": "clusters and private heads",
            "default-free": "the logic loss",
        }
        for key, what in helps.items():
            yield from _pair(rows, "default", key, _against(f"the default against itself without {what}"))
    for kind, cut in CUTS.items():
        short = [f"{one.title} {one.cut(kind):.0%}" for one in faults[1:] if one.cut(kind) < cut]
        yield (
            f"Broken sensors, at least {cut:.0%} less under {'calibrated' if kind == 'calibrated' else 'weekday'} ranges: "
            + ("holds for each." if not short else f"**does not hold**: {', '.join(short)}.")
        )
    short = [f"{one.title}, {one.days} days {one.pooled:.0%}" for one in newcomers if one.pooled < POOLED]
    yield f"Newcomers' pooled properties hold on {POOLED:.0%} of days: " + (
        "holds for each." if not short else f"**does not hold**: {', '.join(short)}."
    )


def _property_is_true(lines: Known) -> str:
    ours, papers = lines["calibrated"], lines["paper"]
    share, width, widest = ours.mean("truth_rho_trace"), ours.mean("property_width"), papers.mean("property_width")
    true, narrow = COVERAGE[0] <= share <= COVERAGE[1], width <= widest
    return (
        f"Calibrated at 90 %, the property holds on {share:.1%} of the true windows (wanted {COVERAGE[0]:.0%} to "
        f"{COVERAGE[1]:.0%}: {_holds(true)}), {width:.2f} wide against {widest:.2f} of the paper's ({_holds(narrow)})."
    )


def _teacher_harms_nobody(rows: Known) -> Iterator[str]:
    changes = {row.title: row.mean("teacher_mse") / row.mean("mse") - 1 for row in rows.values()}
    if changes:
        worst = max(changes, key=lambda title: changes[title])
        fine = _holds(changes[worst] <= HARM)
        yield f"Teacher at most {HARM:+.0%} MSE over all: at worst {changes[worst]:+.2%} ({worst}), {fine}."


def _alike(rows: Known) -> Iterator[str]:
    """The models that clients share, before any step of their own: FedAvg's students are no other."""
    told = [f"{rows['fedavg'].title} {rows['fedavg'].mean('mse'):.4f}"] if "fedavg" in rows else []
    told += [f"{rows[key].title} {rows[key].mean('cluster_mse'):.4f}" for key in ("ifca", "fedstl") if key in rows]
    if len(told) > 1:
        yield f"What is shared, measured alike, before a client's own steps: MSE {'; '.join(told)}."


def _pair(rows: Known, first: str, second: str, say: Callable[[Row, Row], str]) -> Iterator[str]:
    if first in rows and second in rows:
        yield say(rows[first], rows[second])


def _logic(with_it: Row, without: Row) -> str:
    points = 100 * (with_it.mean("rho_point") - without.mean("rho_point"))
    return f"λ = 1 against 0 (FedPer): ρ point {points:+.1f} points, MSE {_change(with_it, without):+.1%}."


def _against(what: str) -> Callable[[Row, Row], str]:
    return lambda first, second: f"{what[0].upper()}{what[1:]}: MSE {_change(first, second):+.1%}."


def _change(first: Row, second: Row) -> float:
    """On the seeds that both have."""
    seeds = sorted(first.seeds.keys() & second.seeds.keys())
    told, than = (fmean(row.seeds[seed]["mse"] for seed in seeds) for row in (first, second))
    return told / than - 1


def _holds(it: bool) -> str:
    return "holds" if it else "**does not hold**"
