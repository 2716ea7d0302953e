"""Verdict in plain words, and the sums behind it."""

from dataclasses import replace

import numpy as np
import pytest

from server.aggregation.metrics import PairedSums, is_plausible, pool_sums
from server.record.result import Best, Verdict
from server.record.verdict import compare_alone, judge, judge_run

BEST = Best(round=13, metrics={"loss": 0.2}, split="validation", test={"hr20": 0.54, "hr20_frequency": 0.31})


def sums(units: int, mean: float, standard_error: float, wins: int, losses: int) -> PairedSums:
    """Return sums with this mean and standard error."""
    total = mean * units
    squares = standard_error**2 * units * (units - 1) + total**2 / units
    return PairedSums(units, total, squares, wins, losses)


def verdict(final: float, simple: PairedSums, best: Best | None = None) -> Verdict:
    found = judge_run("rules", {"hr20": final, "hr20_frequency": 0.31}, best, simple)
    assert found is not None
    return found


def test_a_better_run() -> None:
    against_simple = verdict(0.54, sums(65, 0.23, 0.05, 50, 5), BEST)
    found = compare_alone(against_simple, "rules", BEST, 0.39, sums(65, 0.15, 0.02, 41, 9), "")
    assert found.text == (
        "Of 65 homes, 41 do better than alone (HR@20 .54 against .39, +.15 ± .04) and 9 worse. "
        "Better than the simple baseline 'relation frequency' (.31). "
        "By validation hr@20 round 13 was better than the last: `--checkpoint best` is used."
    )
    assert (found.wins_alone, found.wins_simple, found.units, found.unit_name) == (41, 50, 65, "homes")
    assert (found.mean_alone, found.se_alone) == (pytest.approx(0.15), pytest.approx(0.02))


def test_a_worse_run() -> None:
    against_simple = verdict(0.20, sums(65, -0.11, 0.03, 9, 40))
    found = compare_alone(
        against_simple, "rules", None, 0.39, sums(65, -0.19, 0.03, 6, 48), "; alone for 12 of 30 rounds"
    )
    assert found.text == (
        "Of 65 homes, 6 do better than alone (HR@20 .20 against .39, −.19 ± .06; alone for 12 of 30 rounds) and 48 worse. "
        "Worse than the simple baseline 'relation frequency' (.31)."
    )


def test_a_level_run() -> None:
    found = compare_alone(
        verdict(0.32, sums(65, 0.01, 0.01, 30, 28)), "rules", None, 0.31, sums(65, 0.01, 0.02, 30, 29), ""
    )
    assert found.text == (
        "Of 65 homes, 30 do better than alone (HR@20 .32 against .31, +.01 ± .04) and 29 worse: level. "
        "Level with the simple baseline 'relation frequency' (.31)."
    )


def test_one_unit_does_better() -> None:
    found = compare_alone(verdict(0.2, sums(6, -0.1, 0.03, 1, 5)), "rules", None, 0.3, sums(6, -0.1, 0.03, 1, 5), "")
    assert found.text.startswith(
        "Of 6 homes, 1 does better than alone (HR@20 .20 against .30, −.10 ± .06) and 5 worse."
    )


def test_too_few_units_to_say() -> None:
    found = compare_alone(verdict(0.54, sums(3, 0.2, 0.01, 3, 0)), "rules", None, 0.39, sums(4, 0.1, 0.01, 4, 0), "")
    assert found.text == (
        "Too few homes (4) to say if they do better than alone (HR@20 .54 against .39). "
        "Too few homes (3) to compare with the simple baseline 'relation frequency' (.31)."
    )


def test_errors_are_better_if_lower_and_have_as_many_digits_as_their_uncertainty() -> None:
    metrics = {"rmse": 0.2043, "rmse_local_mean": 0.2085}
    found = judge_run("ratings", metrics, None, sums(80, -0.0042, 0.0005, 60, 15))
    assert found is not None
    assert (found.better, found.text) == ("lower", "Better than the simple baseline 'own mean' (.208).")
    alone = compare_alone(found, "ratings", None, 0.2061, sums(80, -0.0018, 0.0005, 55, 20), "")
    assert alone.text.startswith(
        "Of 80 raters, 55 do better than alone (RMSE .204 against .206, −.002 ± .001) and 20 worse."
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
    assert judge_run("rules", {}, None, PairedSums(9)) is None
    assert judge_run("rules", {"hr20": 0.5}, None, PairedSums()) is None


def test_without_a_baseline_the_verdict_is_about_clients_alone() -> None:
    found = judge_run("rules", {"hr20": 0.5}, None, sums(9, 0.1, 0.01, 9, 0))
    assert found is not None
    assert found.text == ""
    assert replace(found, text="") == found


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
