"""Cost of a run's noise, beside its privacy statement."""

from dataclasses import replace

import pytest

from deploy.pages.statement import FALLS_BACK, HEADING, describe, noise_cost, statement_of
from deploy.pages.terminal import summary_lines
from deploy.pages.view import measure
from server.record.result import Privacy, Result
from server.record.verdict import floor_of
from tests.deploy.pages.test_summary import RESULT as PLAIN

NOISED = Privacy(
    unit="client", mechanism="Gaussian noise", epsilon_spent_max=1.9, delta=1e-5, epsilon=2.0, account="zcdp"
)
EXACT = Privacy(unit="none", mechanism="none", epsilon_spent_max=None, delta=None)
METRICS = {"hr20": 0.3, "hr20_history": 0.5}
RESULT = replace(
    PLAIN,
    method="fedga",
    task="sessions",
    metrics=METRICS,
    best=None,
    clients={},
    privacy=NOISED,
    floor_metric="hr20_history",
    floor_value=0.5,
)


def test_a_run_worse_than_its_floor_says_so_beside_its_statement() -> None:
    claim, terms = statement_of(RESULT)
    assert claim == describe(NOISED)[0]
    assert terms[HEADING] == (noise_cost(RESULT),)
    assert noise_cost(RESULT).endswith(FALLS_BACK)
    assert noise_cost(RESULT).startswith(
        "hr@20 0.300 against 0.500 by 'own history', which sends nothing: noise cost more"
    )
    assert any(line.startswith(HEADING) and "0.500" in line for line in summary_lines(RESULT, None))


@pytest.mark.parametrize(
    ("task", "metrics", "judged"),
    [
        ("sessions", {"hr20": 0.6, "hr20_history": 0.5}, "training gained more"),
        ("sessions", {"hr20": 0.5, "hr20_history": 0.5}, "noise cost all"),
        ("ratings", {"rmse": 0.21, "rmse_local_mean": 0.2}, "noise cost more"),
        ("ratings", {"rmse": 0.19, "rmse_local_mean": 0.2}, "training gained more"),
    ],
)
def test_the_direction_is_that_of_the_metric(task: str, metrics: dict[str, float], judged: str) -> None:
    result = replace(RESULT, task=task, metrics=metrics, **floor_of(task, metrics))
    assert f": {judged}" in noise_cost(result)
    assert noise_cost(result).endswith(FALLS_BACK) is ("noise cost" in judged)


def test_what_clients_use_stands_beside_the_model() -> None:
    result = replace(RESULT, metrics={**METRICS, "used_hr20": 0.48})
    assert noise_cost(result).startswith(
        "hr@20 0.300 against 0.500 by 'own history', which sends nothing: noise cost more"
    )
    assert noise_cost(result).endswith(
        "; hr@20 0.480 as clients use it, each by the better of both on its own validation data"
    )
    assert (measure("used_hr20").label, measure("used_hr20").better) == ("Hit rate @20, as clients use it", "higher")


def test_metrics_of_own_clients_count_where_none_were_sent() -> None:
    assert noise_cost(replace(RESULT, metrics={}, local=METRICS)) == noise_cost(RESULT)


@pytest.mark.parametrize(
    "result",
    [replace(RESULT, privacy=EXACT), replace(RESULT, floor_value=None), replace(RESULT, metrics={})],
    ids=["no noise", "no floor", "no metrics"],
)
def test_nothing_is_said_without_noise_floor_or_metrics(result: Result) -> None:
    assert HEADING not in statement_of(result)[1]


def test_a_result_has_no_floor_that_was_not_measured() -> None:
    assert floor_of("sessions", {"hr20": 0.5}) == {}
    assert floor_of("sessions", METRICS) == {"floor_metric": "hr20_history", "floor_value": 0.5}
