"""Contracts of the product that the plug-ins of the studies fulfil too."""

from pathlib import Path
from typing import Any

import pytest
from fedloom_planners.options import ADAP, ADPML
from pydantic import ValidationError

from common.options import Options
from tests.client.inference.test_adaptation import test_a_client_without_training_data_uses_the_first_model as first
from tests.client.secure.test_training_sums import (
    test_without_noise_the_opened_sum_is_that_of_the_plain_replies as sums,
)
from tests.client.tasks.markets.test_networks import test_items_own_vectors_never_leave_a_market as vectors
from tests.contracts import test_planned as inner
from tests.contracts.test_lies import LIES
from tests.contracts.test_lies import test_a_lie_harms_nobody_and_the_liar_is_named as lied
from tests.contracts.test_noise import test_every_method_trains_with_noise as noised
from tests.contracts.test_noise import test_no_honest_reply_with_noise_is_left_out as honest
from tests.contracts.test_planned import test_no_client_spends_more_than_the_budget as spent
from tests.contracts.test_planned_resume import test_a_resumed_run_equals_an_uninterrupted_one as resumed
from tests.deploy.conftest import *  # noqa: F403  # its fixture `settings`
from tests.deploy.simulation.test_population import folds, test_sums_train_the_model_of_single_replies  # noqa: F401
from tests.deploy.test_secure_sums import test_sums_without_noise_train_the_model_of_single_replies as masked
from tests.server.planning import test_planner as planning
from tests.support import owners
from tests.support.owners import judge_by_loss

test_a_decision_read_from_json_is_equal = planning.test_a_decision_read_from_json_is_equal
test_a_planner_without_a_budget_is_refused_with_a_remedy = (
    planning.test_a_planner_without_a_budget_is_refused_with_a_remedy
)
test_a_plateau_stops_a_run_only_with_early_stopping = planning.test_a_plateau_stops_a_run_only_with_early_stopping
test_a_tenth_of_the_clients_a_round_spends_most_of_each_budget = (
    planning.test_a_tenth_of_the_clients_a_round_spends_most_of_each_budget
)
test_it_stops_without_active_clients_and_after_all_rounds = (
    planning.test_it_stops_without_active_clients_and_after_all_rounds
)
test_no_client_overspends = planning.test_no_client_overspends

PERSONALIZED = pytest.mark.parametrize("method", ["pfedme", "perfedavg"])
LEARNING: dict[str, dict[str, Any]] = {"adpml": {"growth": 8.0}, "adap": {"beta": 0.6, "falls": 1, "clip_floor": 0.2}}
"""Options with which planners reach all their stages in eight rounds."""


@pytest.fixture(autouse=True)
def _options(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, options in LEARNING.items():
        monkeypatch.setitem(owners.PLANNERS, name, options)


def test_pfedme_sends_equal_updates_in_secure_sums() -> None:
    sums("pfedme")


@PERSONALIZED
@pytest.mark.parametrize("noise", [{}, {"privacy.unit": "client"}], ids=["plaintext", "noise"])
def test_vectors_of_items_stay(method: str, noise: dict[str, Any], tmp_path: Path) -> None:
    vectors(method, noise, tmp_path)


def test_a_client_without_data_uses_the_shared_model() -> None:
    first("perfedavg")


@PERSONALIZED
def test_secure_sums_train_the_same_model(method: str, tmp_path: Path) -> None:
    masked(method, {}, tmp_path)


def test_perfedavg_trains_with_noise(tmp_path: Path) -> None:
    noised("perfedavg", "gaussian", tmp_path)


@PERSONALIZED
@pytest.mark.parametrize("lie", ["3.3e38", "100 x norm", "one step", "loss"])
def test_a_lie_harms_nobody(method: str, lie: str, tmp_path: Path) -> None:
    assert lie in LIES
    lied(method, lie, tmp_path)


@PERSONALIZED
def test_every_release_inside_a_planner_is_charged(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(inner.INNER, method, 1)
    judge_by_loss(monkeypatch)
    inner.test_every_release_is_charged_and_every_round_has_a_reward(method, tmp_path, monkeypatch)


@pytest.mark.parametrize(("method", "mechanism"), [("adpml", "gaussian"), ("adap", "gaussian"), ("adap", "privunit")])
def test_no_client_spends_more_than_its_budget(method: str, mechanism: str, tmp_path: Path) -> None:
    spent(method, mechanism, tmp_path)


@pytest.mark.parametrize("method", LEARNING)
def test_a_resumed_run_is_equal(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resumed(method, tmp_path, monkeypatch)


@pytest.mark.parametrize("method", LEARNING)
@pytest.mark.parametrize("noise", ["gaussian", "dp-sgd"])
def test_no_honest_reply_is_left_out(noise: str, method: str, tmp_path: Path) -> None:
    honest(noise, method, 3, tmp_path)


@pytest.mark.parametrize(("kind", "invalid"), [(ADPML, {"growth": 0.5}), (ADAP, {"beta": 0.0})])
def test_an_invalid_option_is_refused(kind: type[Options], invalid: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(invalid))):
        kind.model_validate(invalid)
