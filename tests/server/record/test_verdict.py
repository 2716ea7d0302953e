"""Verdict in plain words, and the sums behind it."""

import numpy as np
import pytest

from common.tasks.spec import SIMPLE
from server.aggregation.metrics import PairedSums, is_plausible, pool_sums
from server.record.result import Best, Verdict
from server.record.verdict import compare_alone, judge, judge_run, outcome_of

BEST = Best(
    round=13, metrics={"loss": 0.2}, split="validation", test={"hr20_shown": 0.54, "hr20_shown_frequency": 0.31}
)


def sums(units: int, mean: float, standard_error: float, wins: int, losses: int) -> PairedSums:
    """Return sums with this mean and standard error."""
    total = mean * units
    squares = standard_error**2 * units * (units - 1) + total**2 / units
    return PairedSums(units, total, squares, wins, losses)


def verdict(final: float, simple: PairedSums, best: Best | None = None) -> Verdict:
    found = judge_run("rules", {"hr20_shown": final, "hr20_shown_frequency": 0.31}, best, {SIMPLE: simple})
    assert found is not None
    return found


def compared(
    against: Verdict, alone: PairedSums, both: PairedSums, note: str = "", best: Best | None = None
) -> Verdict:
    return compare_alone(against, "rules", best, 0.39, {"alone": alone, "both": both}, note)


def test_a_run_that_pays() -> None:
    against_simple = verdict(0.54, sums(65, 0.23, 0.05, 50, 5), BEST)
    found = compared(against_simple, sums(65, 0.15, 0.02, 41, 9), sums(65, 0.12, 0.02, 38, 11), best=BEST)
    assert found.text == (
        "The federation pays: 38 of 65 homes do better than alone and than 'relation frequency' (HR@20 shown .54; "
        "mean over homes +.15 ± .04 against alone, +.23 ± .10 against 'relation frequency'). "
        "By validation hr@20 shown round 13 was better than the last: `--checkpoint best` is used."
    )
    assert outcome_of(found) == "better"
    assert (found.wins_alone, found.wins_simple, found.units, found.unit_name) == (41, 50, 65, "homes")
    assert (found.helped, found.helped_of, found.alone) == (38, 65, 0.39)
    assert (found.mean_alone, found.se_alone) == (pytest.approx(0.15), pytest.approx(0.02))


def test_a_run_that_does_not_pay_says_what_to_do() -> None:
    against_simple = verdict(0.20, sums(65, -0.11, 0.03, 9, 40))
    found = compared(against_simple, sums(65, -0.19, 0.03, 6, 48), sums(65, -0.2, 0.03, 1, 50), "; alone: 65 of 90")
    assert found.text == (
        "The federation does not pay: 1 of 65 homes does better than alone and than 'relation frequency' "
        "(HR@20 shown .20; alone: 65 of 90; mean over homes −.19 ± .06 against alone, "
        "−.11 ± .06 against 'relation frequency'); let more "
        "homes take part, or train each alone with `--method local` or use 'relation frequency', which sends nothing."
    )
    assert outcome_of(found) == "worse"


@pytest.mark.parametrize("other", ["better", "level", "worse"])
@pytest.mark.parametrize("one", ["better", "level", "worse"])
def test_both_comparisons_are_in_one_sentence_with_the_worse_outcome(one: str, other: str) -> None:
    """A run is never level in one line and worse than nothing in the next."""
    mean = {"better": 0.2, "level": 0.01, "worse": -0.2}
    found = compared(
        verdict(0.3, sums(65, mean[one], 0.02, 20, 20)), sums(65, mean[other], 0.02, 20, 20), sums(65, 0, 0.02, 9, 20)
    )
    outcome = next(each for each in ("worse", "level", "better") if each in (one, other))
    assert outcome_of(found) == outcome
    says = {"better": "pays", "level": "makes no clear difference", "worse": "does not pay"}
    assert found.text.startswith(f"The federation {says[outcome]}: 9 of 65 homes do better than alone and than ")
    assert found.text.count(". ") == 0
    assert ("let more homes take part" in found.text) == (outcome != "better")
    assert ("--method local" in found.text) == (outcome == other != "better")
    assert ("which sends nothing" in found.text) == (outcome == one != "better")


def test_without_a_comparison_with_alone_the_verdict_is_about_the_baseline() -> None:
    assert verdict(0.32, sums(65, 0.01, 0.01, 30, 28)).text == (
        "The federation makes no clear difference: 30 of 65 homes do better than 'relation frequency' (HR@20 shown .32; "
        "mean over homes +.01 ± .02 against 'relation frequency'); let more homes take part, or use 'relation frequency', "
        "which sends nothing."
    )


def test_too_few_units_to_say() -> None:
    few = sums(4, 0.1, 0.01, 4, 0)
    found = compared(verdict(0.54, sums(4, 0.2, 0.01, 3, 0)), few, few)
    assert (
        found.text
        == "Too few homes (4) to say if they do better than alone and than 'relation frequency' (HR@20 shown .54)."
    )


def test_errors_are_better_if_lower_and_have_as_many_digits_as_their_uncertainty() -> None:
    metrics = {"rmse": 0.2043, "rmse_local_mean": 0.2085}
    found = judge_run("ratings", metrics, None, {SIMPLE: sums(80, -0.0042, 0.0005, 60, 15)})
    assert found is not None
    alone = {"alone": sums(80, -0.0018, 0.0005, 55, 20), "both": sums(80, -0.001, 0.0005, 50, 20)}
    text = compare_alone(found, "ratings", None, 0.2061, alone).text
    assert found.better == "lower"
    assert text == (
        "The federation pays: 50 of 80 raters do better than alone and than 'own mean' "
        "(RMSE .204; mean over raters −.002 ± .001 against alone, −.004 ± .001 against 'own mean')."
    )


@pytest.mark.parametrize(
    ("units", "mean", "error", "better", "outcome"),
    [
        (5, 0.2, 0.1, "higher", "better"),
        (5, 0.19, 0.1, "higher", "level"),
        (5, -0.2, 0.1, "higher", "worse"),
        (5, -0.2, 0.1, "lower", "better"),
        (5, 0.0, 0.0, "higher", "level"),
        (4, 9.0, 0.1, "higher", "few"),
        (0, None, None, "higher", "few"),
    ],
)
def test_the_outcome_needs_two_standard_errors_and_five_units(
    units: int, mean: float | None, error: float | None, better: str, outcome: str
) -> None:
    assert judge(units, mean, error, better) == outcome


def test_nothing_measured_gives_no_verdict() -> None:
    assert judge_run("rules", {}, None, {SIMPLE: PairedSums(9)}) is None
    assert judge_run("rules", {"hr20_shown": 0.5}, None, {}) is None


def test_without_a_baseline_the_verdict_awaits_clients_alone() -> None:
    found = judge_run("rules", {"hr20_shown": 0.5}, None, {SIMPLE: sums(9, 0.1, 0.01, 9, 0)})
    assert found is not None
    assert found.text == ""
    alone = {"alone": sums(9, 0.1, 0.01, 8, 0), "both": PairedSums()}
    text = compare_alone(found, "rules", None, 0.4, alone).text
    assert (
        text
        == "The federation pays: 8 of 9 homes do better than alone (HR@20 shown .50; mean over homes +.10 ± .02 against alone)."
    )


def test_the_verdict_is_on_what_homes_use_and_counts_them_in_a_sentence() -> None:
    used = {"uses_shared_model": 31, "uses_relation_frequency": 30, "uses_popularity": 4}
    paired = {SIMPLE: sums(65, 0.1, 0.02, 30, 4)} | {key: PairedSums(65, 0, 0, n, 65 - n) for key, n in used.items()}
    metrics = {"hr20_shown": 0.3, "hr20_shown_frequency": 0.31, "used_hr20_shown": 0.41}
    found = judge_run("rules", metrics, None, paired)
    assert found is not None
    assert found.final == 0.41
    assert found.uses == {"shared model": 31, "relation frequency": 30, "popularity": 4}
    assert found.text.endswith(
        " 31 of 65 homes use the shared model, 30 relation frequency, 4 popularity, by their own validation data."
    )
    personal = {"uses_personalized_model": PairedSums(3, 0, 0, 1, 2), "uses_shared_model": PairedSums(3, 0, 0, 2, 1)}
    found = judge_run("rules", metrics, None, {SIMPLE: sums(3, 0.1, 0.02, 3, 0), **personal})
    assert found is not None
    assert "1 of 3 homes uses their personalized model, 2 the shared model, by" in found.text


def test_sums_are_pooled_over_clients_and_have_the_mean_and_error_of_all_units() -> None:
    d = np.array([0.1, -0.2, 0.4, 0.0, 0.3])
    reports = [np.array([len(x), x.sum(), (x**2).sum(), (x > 0).sum(), (x < 0).sum()]) for x in (d[:2], d[2:])]
    pooled = pool_sums(reports)
    assert (pooled.units, pooled.wins, pooled.losses) == (5, 3, 1)
    assert pooled.mean == pytest.approx(d.mean())
    assert pooled.standard_error == pytest.approx(d.std(ddof=1) / np.sqrt(5))


@pytest.mark.parametrize(
    "report",
    [
        [np.nan, 0, 0, 0, 0],
        [2, np.inf, 1, 1, 1],
        [-1, 0, 0, 0, 0],
        [2.5, 0, 1, 1, 1],
        [2, 0, 1, 2, 1],
        [1e12, 0, 1, 0, 0],
        [2, 1e300, 1e300, 1, 1],
        [2, 10.0, 1.0, 1, 1],
        [2, 1.0, 1.0, 1],
        [[2, 1.0, 1.0, 1, 1]],
    ],
)
def test_sums_that_no_client_can_have_measured_are_left_out(report: list[float]) -> None:
    good = np.array([1, 0.5, 0.25, 1, 0])
    assert not is_plausible(np.array(report, float))
    assert pool_sums([np.array(report, float), good]) == PairedSums(1, 0.5, 0.25, 1, 0)
    assert not is_plausible(np.array([1, 1, 1, 1, 0]))


def test_from_five_clients_on_no_client_has_over_ten_times_the_median_of_units() -> None:
    """900 units of the last client count as 10 of a median of 1: their sums are divided by 90."""
    honest = [np.array([1, 0.1, 0.01, 1, 0])] * 4
    assert pool_sums([*honest, np.array([900, -900, 900, 0, 900.0])]) == PairedSums(14, 0.4 - 10, 10.04, 4, 10)
    assert pool_sums([*honest[:3], np.array([900, -900, 900, 0, 900.0])]).units == 903
    empty = [np.zeros(5)] * 9
    assert pool_sums([*honest, *empty]) == pool_sums(honest)
