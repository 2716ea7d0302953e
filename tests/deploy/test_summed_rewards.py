"""Planners whose rewards are metrics in secure sums."""

from pathlib import Path

import pytest

from common.errors import RunError
from common.tasks.registry import TASKS
from tests.deploy import test_summed_metrics
from tests.deploy.test_summed_metrics import VALIDATED, mixed, rounds
from tests.support import sum_runs
from tests.support.plugins import install, noiseless
from tests.support.sum_runs import MIN_SUM, SumFederation, summed

POLICY = sum_runs.POLICY.model_copy(update={"methods": (*sum_runs.POLICY.methods, "noiseless")})
OWNERS = POLICY.model_copy(update={"share_metrics": "summed"})


@pytest.fixture(autouse=True)
def _noiseless_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, noiseless())
    monkeypatch.setattr(test_summed_metrics, "POLICY", POLICY)
    monkeypatch.setattr(test_summed_metrics, "OWNERS", OWNERS)


def test_a_planner_gets_its_rewards_from_sums(tmp_path: Path) -> None:
    plan = {
        "algorithm__noiseless__stop": "plateau",
        "algorithm__noiseless__patience": 2,
        "algorithm__noiseless__min-gain": 9.0,
    }
    result = SumFederation(tmp_path, policy=OWNERS).run(summed("noiseless", rounds=5, **VALIDATED, **plan))
    assert (result.rounds_done, result.status) == (2, "completed")
    hits = [event.metrics[TASKS["rules"].objective.metric] for event in rounds(tmp_path)]
    assert rounds(tmp_path)[1].server["reward"] == pytest.approx(hits[1] - hits[0], abs=1e-6)


def test_a_planner_without_enough_clients_for_a_sum_is_refused_at_the_start(tmp_path: Path) -> None:
    federation = mixed(tmp_path, POLICY.model_copy(update={"share_metrics": "never"}), sharing=MIN_SUM - 1)
    with pytest.raises(RunError, match="needs metrics, which 2 clients share; a secure sum has at least 3"):
        federation.run(summed("noiseless", algorithm__noiseless__stop="plateau", **VALIDATED))
