"""Counts of embedded homes in one sum: few homes drown in noise, and claims follow from the rows."""

import numpy as np

from client.tasks.rules.learner import RulesLearner
from common.tasks.rules.task import TASK
from studies.harness.claim import Comparison
from studies.rules.claims import helper_claims, sum_claims, trained_claims
from studies.rules.experiments import CLEAR, SUMMED, SUMS
from studies.rules.runs import split_model
from studies.rules.summed_counts import _splits, measure_counts, measure_visible
from tests.support.study_rows import row
from tests.support.toys import CATALOGUE, configured, toy_dataset


def test_noise_costs_hits_of_few_homes_and_equal_seeds_measure_the_same() -> None:
    exact, noised, stated = (measure_counts(key, 0).metrics for key in ("125-exact", "125-8-unknown", "125-8"))
    assert noised["hr20"] < 0.5 * exact["hr20"]
    assert noised["filtered_hr20"] > noised["hr20"]
    assert stated["hr20"] > 2 * noised["hr20"], "the vocabulary's abilities rule out most of the noise"
    assert measure_counts("125-8", 0).metrics == stated


def test_a_share_of_the_exact_hits_is_required() -> None:
    rows = {key: row(key, {0: 0.5}, "hr20") for key in SUMS}
    assert [claim.holds for claim in sum_claims(rows)] == [True, True]
    rows["2000-2"] = row("2000-2", {0: 0.44}, "hr20")
    assert [(claim.holds, "88%" in claim.text) for claim in sum_claims(rows)] == [(False, True), (True, False)]


def test_noise_on_counts_is_an_input_of_the_saved_model() -> None:
    learner = RulesLearner(configured("fedavg", rounds=1).task_run(TASK, CATALOGUE), toy_dataset(3))
    names = {name for name, _ in learner.module.named_parameters()}
    params, statics = split_model(
        {name: np.ones(2, np.float32) for name in (*names, "counts", "counts_noise")}, learner
    )
    assert (params.keys(), statics.keys()) == (names, {"counts", "counts_noise"})


def test_sums_must_train_the_model_of_counts_in_clear() -> None:
    def claims(difference: float) -> list[bool]:
        rows = {key: row(key, {0: 0.67, 1: 0.6}, "hr20") for key in (CLEAR, SUMMED)}
        for seed, trial in rows[SUMMED].trials.items():
            trial.metrics["hr20"] += difference * seed
        for one in rows.values():
            for trial in one.trials.values():
                trial.metrics["mr0"] = 0.3
        return [claim.holds for claim in helper_claims(rows)]

    assert claims(0.004) == [True, True]
    assert claims(0.006) == [False, True]
    assert list(helper_claims({})) == []


def test_auto_may_lose_little_where_it_starts_from_counts() -> None:
    lost = Comparison((0.47, 0.46), (0.5, 0.48), higher_is_better=True)
    [claim] = trained_claims([("HR@20 at 500 homes, ε = 8", lost)])
    assert (claim.holds, "500 homes, ε = 8: −0.025" in claim.text) == (False, True)


def test_more_homes_leave_more_of_their_counts_visible() -> None:
    found = [measure_visible(_splits(n, 0), TASK.demo(), e, 0).metrics for n, e in ((125, 4.0), (500, 8.0))]
    assert found[0]["visible"] < 0.4 < 0.6 < found[1]["visible"]
    assert found[0]["ratio"] < 100 < found[1]["ratio"]
