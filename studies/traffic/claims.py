"""Claims of the traffic page, each checked against the stored numbers."""

from collections.abc import Iterator, Mapping
from statistics import fmean

from common.text import count
from studies.harness.claim import Claim, compare, verdict
from studies.harness.row import Row, in_order
from studies.traffic.experiments import DEFAULT, FAULTS, PAPER, RIDGE

TARGETS = {"boroondara": 0.0215, "ten": 0.175}
"""MSE that the default model has to reach."""

PROFILE = {"boroondara": 0.0209, "ten": 0.2137}
"""MSE of the weekly profile in the exploration that set these targets."""

EASIER = 0.9
"""Share of that MSE below which the data here are easier than in the exploration."""

COVERAGE = 0.87, 0.93
"""Share of the true windows that calibrated properties have to hold on."""

HARM = 0.01
"""Largest share of the student's MSE by which the teacher may be worse."""

CUTS = {"calibrated": 0.30, "weekday": 0.50}
"""Share of a broken sensor's MSE that the teacher has to remove."""

REPAIRED = {"dead-6h": 1.05, "dead-24h": 1.05, "spikes": 1.05, "scaled": 1.2}
"""Fault -> bound on the MSE with repaired histories, as a multiple of the MSE on sound ones."""

POOLED = 0.75
"""Share of the true days that a cold-start sensor's pooled property has to hold on."""

PAIRS = (
    ("fedrep-logic", "fedrep", "λ = 1 against λ = 0 (FedPer)"),
    ("fedstl", "fedrep-logic", "FedSTL against FedPer with λ = 1, equal uploads, half the steps"),
    ("fedstl", "fedstl-one", "FedSTL with five clusters against one"),
    ("fedstl", "ifca", "FedSTL against IFCA, equal uploads, half the steps"),
    ("fedstl-rounds", "ifca", "FedSTL against IFCA, equal rounds and steps, twice the uploads"),
)
ABLATIONS = (
    ("default", "default-one", "The default model's network against itself without clusters"),
    ("default", "default-fedavg", "The default model's network against itself without clusters and private heads"),
    ("default", "default-free", "The default model's network against itself without the logic loss"),
)

Rows = Mapping[str, Row]


def verdicts(setting: str, rows: Rows, faults: Rows, cold: Rows) -> Iterator[str]:
    """Yield one sentence a claim, of those whose rows were measured.

    Args:
        setting: Short name of the data set.
        rows: Rows at the first origin.
        faults: Rows of broken sensors.
        cold: Rows of cold-start sensors.
    """
    if {"baselines-calibrated", "baselines-paper"} <= rows.keys():
        yield _property_holds(rows)
    yield from _teacher_is_harmless(rows)
    yield from _changes(rows, PAIRS[:1], rho=True)
    yield from _changes(rows, PAIRS[1:])
    yield from _shared_models(rows)
    if {RIDGE.key, "baselines-calibrated"} <= rows.keys():
        yield from _default(setting, rows)
    yield from _changes(rows, ABLATIONS)
    if faults:
        yield from _corrections(faults)
        yield from _repairs(faults)
    if cold:
        yield _pooled_properties_hold(cold)


def correction(fault: Row, kind: str) -> float:
    """Return the share of the student's MSE that correction by a kind of property removes."""
    return 1 - fault.only[kind] / fault.only["student"]


def _property_holds(rows: Rows) -> str:
    ours, papers = rows["baselines-calibrated"].only, rows["baselines-paper"].only
    share, width, widest = ours["truth_rho_trace"], ours["property_width"], papers["property_width"]
    low, high = COVERAGE
    true, narrow = low <= share <= high, width <= widest
    return (
        f"Property calibrated at 90 %: it holds on {share:.1%} of the true windows (target {low:.0%} to {high:.0%}:"
        f" {verdict(true)}). Its width is {width:.2f} against {widest:.2f} of the paper's: {verdict(narrow)}."
    )


def _teacher_is_harmless(rows: Rows) -> Iterator[str]:
    trained = in_order(rows, (one.key for one in (*PAPER, RIDGE, *DEFAULT))).values()
    changes = {row.title: row.mean("teacher_mse") / row.mean("mse") - 1 for row in trained}
    if changes:
        worst = max(changes, key=lambda title: changes[title])
        text = f"Teacher at most {HARM:+.0%} MSE over all rows: at worst {changes[worst]:+.2%} ({worst})"
        yield str(Claim(text, changes[worst] <= HARM))


def _shared_models(rows: Rows) -> Iterator[str]:
    """State the MSE of shared models before local steps; FedAvg's students are shared models."""
    errors = [f"{rows['fedavg'].title} {rows['fedavg'].mean('mse'):.4f}"] if "fedavg" in rows else []
    errors += [f"{rows[key].title} {rows[key].mean('cluster_mse'):.4f}" for key in ("ifca", "fedstl") if key in rows]
    if len(errors) > 1:
        yield f"MSE of the shared models, before a client's own steps: {'; '.join(errors)}."


def _default(setting: str, rows: Rows) -> Iterator[str]:
    reached, local = rows[RIDGE.key].mean("mse"), rows["baselines-calibrated"].only
    bound = TARGETS[setting]
    profile, explored = local["profile_mse"], PROFILE[setting]
    easier = f" The data are easier than in the exploration: the profile's MSE is {profile:.4f}, there {explored:g}."
    text = f"MSE of the default at most {bound:g}: {reached:.4f}"
    yield str(Claim(text, reached <= bound)) + (easier if profile < EASIER * explored else "")
    baselines = {
        "weekly profile": "profile_mse",
        "profile + own ridge": "ridge_mse",
        "profile + federated ridge": "mse",
    }
    changes = [f"{reached / local[key] - 1:+.1%} to {title}" for title, key in baselines.items()]
    if "default" in rows:
        changes.append(f"{reached / rows['default'].mean('mse') - 1:+.1%} to the default model's network")
    yield f"MSE of the default: {', '.join(changes)}."


def _changes(rows: Rows, pairs: tuple[tuple[str, str, str], ...], *, rho: bool = False) -> Iterator[str]:
    """State the change of MSE, and with `rho` the change of ρ point, on the seeds that both rows have."""
    for first, second, text in pairs:
        if first in rows and second in rows and (found := compare(rows[first], rows[second], "mse")):
            mse, reference = fmean(found.first), fmean(found.second)
            points = 100 * (rows[first].mean("rho_point") - rows[second].mean("rho_point"))
            more, seeds = f"ρ point {points:+.1f} points, " if rho else "", count(found.seeds, "seed")
            yield f"{text}: {more}MSE {mse:.4f} against {reference:.4f} ({mse / reference - 1:+.1%}), {seeds}."


def _corrections(faults: Rows) -> Iterator[str]:
    broken = [faults[key] for key in FAULTS if key in faults and key != "sound"]
    for kind, cut in CUTS.items():
        short = [f"{row.title} {correction(row, kind):.0%}" for row in broken if correction(row, kind) < cut]
        missed = f" ({', '.join(short)})" if short else ""
        yield f"Broken sensors, at least {cut:.0%} less MSE under {kind} ranges: {verdict(not short)}{missed}."


def _repairs(faults: Rows) -> Iterator[str]:
    """State how far repaired histories are from sound ones, and compare the repair with the rule on z."""
    measured = {key: row.only for key, row in faults.items() if "student_property" in row.only}
    if "sound" not in measured:
        return
    for name, title in (("student", "GRU"), ("ridge", "profile + own ridge")):
        sound = measured["sound"][name]
        ratios = {key: measured[key][f"{name}_property"] / sound for key in REPAIRED if key in measured}
        short = [f"{faults[key].title} {ratio:.2f}" for key, ratio in ratios.items() if ratio > REPAIRED[key]]
        missed = f" ({', '.join(short)})" if short else ""
        means = [fmean(found[f"{name}_{kind}"] for found in measured.values()) for kind in ("property", "z")]
        change = measured["sound"][f"{name}_property"] / sound - 1
        yield (
            f"{title}, repaired by the property: at most 1.05 times the MSE on sound histories, 1.2 for a scaled counter:"
            f" {verdict(not short)}{missed}. On sound histories {change:+.1%}. Mean over faults {means[0]:.4f}, by the z rule"
            f" {means[1]:.4f}."
        )


def _pooled_properties_hold(cold: Rows) -> str:
    short = [f"{row.title} {row.only['pooled']:.0%}" for row in cold.values() if row.only["pooled"] < POOLED]
    missed = f" ({', '.join(short)})" if short else ""
    return f"Pooled properties of cold-start sensors hold on {POOLED:.0%} of days: {verdict(not short)}{missed}."
