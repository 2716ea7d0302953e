"""Whole runs with planners: spent budgets, retired clients and early ends."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import MODEL, Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from client.tasks.rules.data.homes import Homes
from client.tasks.traffic.data.series import Sensors
from common.arrays import sha256
from common.config.keys import current_key
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, RefusedError, RunError
from common.options import Scalar
from common.privacy.accounts import gdp_of
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import EvaluateReply, EvaluateRequest
from deploy.simulation.grid import InProcessGrid
from server.aggregation.metrics import Evaluation, pool
from server.record.folder import BEST_MODEL, RunDirectory
from server.record.journal import Journal
from server.run import run
from tests.support.owners import (
    PLANNERS,
    SHARING,
    Owners,
    costs_of,
    judge_by_loss,
    listening,
    model_of,
    noisy,
    owners,
    total_of,
)
from tests.support.sensors import MEASURES, QUICK, road_config, rounds_of, sensor
from tests.support.sensors import session as sensor_session
from tests.support.toys import CATALOGUE, toy_homes


@pytest.mark.parametrize(
    ("method", "mechanism"), [*((m, "gaussian") for m in PLANNERS), ("bgtplanner", "laplace"), ("uniform", "privunit")]
)
def test_no_client_spends_more_than_the_budget(method: str, mechanism: str, tmp_path: Path) -> None:
    config, clients = noisy(tmp_path, method, privacy__mechanism=mechanism, **PLANNERS[method]), owners()
    result = clients.run(config, tmp_path)
    total, costs = total_of(config), costs_of(tmp_path)
    assert result.status == "completed"
    for spent in clients.spent(config).values():
        assert 0.5 * total < spent <= total
        assert spent == pytest.approx(sum(costs), rel=1e-6)
    left = [100 * (1 - part / total) for part in np.cumsum(costs)]
    assert [100 * r.server["left"] for r in rounds_of(tmp_path)] == pytest.approx(left, abs=1e-6)
    assert all(math.isnan(r.loss) and r.answered == r.asked == 3 for r in rounds_of(tmp_path))
    assert result.privacy.epsilon_spent_max is not None
    assert 0 < result.privacy.epsilon_spent_max <= config.privacy.epsilon == result.privacy.epsilon


def test_a_run_with_exhausted_budgets_completes_and_stores_its_model(tmp_path: Path) -> None:
    """The two arms of stage 1a cost three even shares; eight rounds exceed the budget."""
    clients = owners()
    result = clients.run(noisy(tmp_path, "bgtplanner", **PLANNERS["bgtplanner"]), tmp_path)
    assert (result.status, result.reason) == ("completed", "ended early: no client can pay another round")
    assert result.rounds_done == len(rounds_of(tmp_path)) < 8
    assert result.model_sha256 == sha256(model_of(tmp_path))
    for store in clients.stores.values():
        used = RunDirectory(tmp_path, "toy").load_model(BEST_MODEL)[0]
        assert sha256(load(store.read("toy", MODEL) or b"")) == sha256(used) != result.model_sha256
    last = rounds_of(tmp_path)[-1].metrics.keys()
    assert last
    assert result.metrics.keys() == {*last, "used_hr20", "used_hr20_shown"}  # metrics of final models alone
    assert sorted(result.clients) == ["client-0", "client-1", "client-2"]


def test_the_best_round_of_an_early_end_is_not_selected_on_the_test_split(tmp_path: Path) -> None:
    config = noisy(tmp_path, "bgtplanner", tasks__rules__validation_share=0.3, **PLANNERS["bgtplanner"])
    result = owners().run(config, tmp_path)
    measured = {r.round: r.metrics for r in rounds_of(tmp_path)}
    assert result.best is not None
    assert result.best.metrics == measured[result.best.round]
    assert result.metrics != measured[result.rounds_done], "test data, not validation data"


def test_a_client_with_an_exhausted_budget_is_left_out(tmp_path: Path) -> None:
    config = noisy(tmp_path)
    poor = Policy(share_metrics="always", max_epsilon=2.0)
    clients = Owners((SHARING, poor, SHARING))
    result = clients.run(config, tmp_path)
    even = total_of(config) / 8
    affordable = int(gdp_of(2.0, 1e-5) / even)
    assert 0 < affordable < 8
    assert [r.asked for r in rounds_of(tmp_path)] == [3] * affordable + [2] * (8 - affordable)
    assert [r.server["retired"] for r in rounds_of(tmp_path)] == [0] * affordable + [1] * (8 - affordable)
    assert (result.status, result.reason) == ("completed", "")
    assert clients.spent(config)["client-1"] == pytest.approx(affordable * even, rel=1e-6)
    assert "client-1" in result.clients, "it is measured and has the model all the same"


def test_a_round_that_too_few_clients_can_pay_is_not_started(tmp_path: Path) -> None:
    config = noisy(tmp_path, federation__min_replies=3)
    clients = Owners((SHARING, SHARING, Policy(share_metrics="always", max_epsilon=2.0)))
    result = clients.run(config, tmp_path)
    assert (result.status, result.reason) == (
        "completed",
        "ended early: 2 clients can pay another round, the round needs 3",
    )
    assert len(set(clients.spent(config).values())) == 1


def test_clients_outside_a_cohort_pay_nothing(tmp_path: Path) -> None:
    config, clients = noisy(tmp_path, "bgtplanner", federation__cohort=0.5, **PLANNERS["bgtplanner"]), owners(4)
    clients.run(config, tmp_path)
    assert [r.asked for r in rounds_of(tmp_path)] == [2] * 8
    assert sum(clients.spent(config).values()) == pytest.approx(2 * sum(costs_of(tmp_path)), rel=1e-6)


def test_without_a_planner_the_budget_is_spent_evenly(tmp_path: Path) -> None:
    planned = owners().run(noisy(tmp_path, "uniform", rounds=3), tmp_path / "planned")
    plain = owners().run(noisy(tmp_path, "fedavg", rounds=3), tmp_path / "plain")
    assert planned.model_sha256 == plain.model_sha256
    assert costs_of(tmp_path / "plain") == pytest.approx([gdp_of(5.0, 1e-5) / 3] * 3)


def test_a_planner_without_shared_metrics_fails_with_a_remedy(tmp_path: Path) -> None:
    private, config = Policy(), noisy(tmp_path, "bgtplanner")
    clients = owners(policy=private)
    remedy = r'set share-metrics = "always" .* or use a planner without metrics \(algorithm\.bgtplanner\.reward=norm'
    with pytest.raises(RunError, match=rf"'hr20_shown', which none of the 3 enrolled clients shares .*; {remedy}"):
        clients.run(config, tmp_path / "metrics")
    assert clients.spent(config) == dict.fromkeys(("client-0", "client-1", "client-2"), 0.0)
    result = RunDirectory(tmp_path / "metrics", "toy").result()
    assert result is not None
    assert (result.status, result.rounds_done, "reward=norm" in result.reason) == ("failed", 0, True)
    by_norm = noisy(tmp_path, "bgtplanner", reward="norm", **PLANNERS["bgtplanner"])
    assert owners(policy=private).run(by_norm, tmp_path / "norm").status == "completed"
    assert any(r.server["reward"] for r in rounds_of(tmp_path / "norm")[1:])


def test_metrics_of_one_client_suffice_for_a_planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge_by_loss(monkeypatch)
    clients = Owners((Policy(), SHARING, Policy()))
    result = clients.run(noisy(tmp_path, "bgtplanner", **PLANNERS["bgtplanner"]), tmp_path)
    assert result.status == "completed"
    assert [name for name, one in result.clients.items() if one.metrics] == ["client-1"]
    assert any(r.server["reward"] for r in rounds_of(tmp_path)[1:])


def test_a_planner_charges_no_client_after_the_last_one_with_metrics_left(tmp_path: Path) -> None:
    """The only client that shares its metrics is absent from round 3 on."""
    config = noisy(tmp_path, "bgtplanner", **PLANNERS["bgtplanner"])
    clients = Owners((SHARING, Policy()))

    class Leaving(InProcessGrid):
        def get_node_ids(self) -> list[int]:
            done = RunDirectory(tmp_path, "toy").path / "metrics.jsonl"
            return [2] if done.exists() and len(rounds_of(tmp_path)) >= 2 else [1, 2]

    with pytest.raises(RunError, match="none of the 1 enrolled clients"):
        run(Leaving(clients.sessions, 1), config, tmp_path)
    paid = sum(costs_of(tmp_path))
    assert len(costs_of(tmp_path)) == 2
    assert clients.spent(config)["client-1"] == pytest.approx(paid, rel=1e-6)


def test_a_client_that_can_pay_only_part_of_a_round_is_left_out(tmp_path: Path) -> None:
    """Two and a half even shares are less than three, though they pay for the first of a round's two releases."""
    noise: dict[str, Scalar] = {"privacy__unit": "client", "privacy__epsilon": 9.0, "privacy__mechanism": "laplace"}
    config = road_config("ifca", **noise, recluster_every=1, rounds=3)
    poor = Policy(share_metrics="always", max_epsilon=7.5)
    sessions = {k + 1: sensor_session(f"client-{k}", (sensor(k),), policy=(SHARING, poor)[k]) for k in range(2)}
    run(InProcessGrid(sessions, 1), config, tmp_path)
    assert [(r.asked, r.answered, r.refused) for r in rounds_of(tmp_path)] == [(2, 2, {}), (2, 2, {}), (1, 1, {})]
    assert sessions[2].releaser.budget.ledger(config.privacy).spent() == pytest.approx(6.0)


@pytest.mark.parametrize(("method", "stop"), [("bgtplanner", "never"), ("uniform", "plateau")])
def test_a_planner_without_shared_metrics_sends_no_request(method: str, stop: str, tmp_path: Path) -> None:
    clients = owners(policy=Policy(share_metrics="never"))
    with pytest.raises(
        RunError, match=f"{method} needs the metric 'hr20_shown', which none of the 3 enrolled clients shares"
    ):
        clients.run(noisy(tmp_path, method, stop=stop), tmp_path)
    with pytest.raises(ConfigError, match="set evaluate-every=1"):
        noisy(tmp_path, method, stop=stop, evaluate_every=2)
    assert set(clients.spent(noisy(tmp_path, method, stop=stop)).values()) == {0.0}


def test_a_client_that_misses_an_evaluation_does_not_change_the_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewards compare the same clients; client-0 does not reply in round 3."""
    measure = Session.evaluate

    def silent(session: Session, request: EvaluateRequest) -> EvaluateReply:
        if (session.client, request.round) == ("client-0", 3):
            raise RefusedError("busy")
        return measure(session, request)

    evaluations: list[Evaluation] = []
    judge_by_loss(monkeypatch)
    monkeypatch.setattr(Session, "evaluate", silent)
    monkeypatch.setattr(Journal, "record_evaluation", listening(evaluations))
    owners().run(noisy(tmp_path, stop="plateau", rounds=5, tasks__rules__validation_share=0.3), tmp_path)
    present = [{name: one.values_of("loss")[name] for name in ("client-1", "client-2")} for one in evaluations[:4]]
    assert "client-0" not in evaluations[2].clients
    assert evaluations[2].notes["reward"] == pytest.approx(
        pool("loss", present[1]) - pool("loss", present[2]), abs=1e-12
    )
    before = {**present[2], "client-0": evaluations[1].values_of("loss")["client-0"]}
    assert evaluations[3].notes["reward"] == pytest.approx(
        pool("loss", before) - pool("loss", evaluations[3].values_of("loss")), abs=1e-12
    )


@pytest.mark.parametrize("planned", [0, 2])
def test_a_budget_is_spread_over_the_rounds_that_ask_a_client(planned: int, tmp_path: Path) -> None:
    options: dict[str, Scalar] = {"rounds": 12, "federation__cohort": 0.2, "privacy__participations": planned}
    config, clients = noisy(tmp_path, **options), Owners((SHARING,) * 5)
    clients.run(config, tmp_path)
    cost = total_of(config) / (planned or 6)  # 2.4 rounds and two deviations of 1.4
    assert costs_of(tmp_path) == pytest.approx([cost] * len(costs_of(tmp_path)))
    assert all(spent <= total_of(config) * (1 + 1e-9) for spent in clients.spent(config).values())


INNER = {"ifca": 2, "fedstl": 3, "pfgnn": 1}
"""Method -> number of releases of a client per round."""

NOISE: dict[str, Scalar] = {
    "privacy.unit": "client",
    "privacy.epsilon": 5.0,
    "run-id": "toy",
    "federation.min-clients": 1,
    "federation.wait": 0.1,
}

SMALL: dict[str, dict[str, Scalar]] = {
    "fedstl": {**QUICK, "algorithm.fedstl.clusters": 2, "training.local-steps": 2},
    "pfgnn": {"task": "markets", "tasks.markets.batch": 32, "training.local-steps": 2},
}


def planned(inner: str, folder: Path) -> RunConfig:
    own: dict[str, Scalar] = {**PLANNERS["bgtplanner"], "inner": inner}
    if inner not in SMALL:
        return noisy(folder, "bgtplanner", rounds=3, **own)
    flat = {current_key(f"algorithm.bgtplanner.{key.replace('_', '-')}"): value for key, value in own.items()}
    return parse({**SMALL[inner], **NOISE, "method": "bgtplanner", "rounds": 3, **flat})


def parts(inner: str) -> Sequence[AnyDataset]:
    if inner == "pfgnn":
        return partition(read_all("markets", "demo:3-5"), 0)
    if inner == "fedstl":
        return [Sensors((sensor(k),), MEASURES) for k in range(2)]
    return [Homes((home,), CATALOGUE) for home in toy_homes(2)]


def session(name: str, part: AnyDataset) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, part)

    return Session(name, learner, MemoryStore(), in_memory(SHARING))


@pytest.mark.parametrize("inner", INNER)
def test_every_release_is_charged_and_every_round_has_a_reward(
    inner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_by_loss(monkeypatch)
    config = planned(inner, tmp_path)
    sessions = {k: session(f"client-{k}", part) for k, part in enumerate(parts(inner), start=1)}
    result = run(InProcessGrid(sessions, 1), config, tmp_path)
    rounds, total, costs = rounds_of(tmp_path), total_of(config), costs_of(tmp_path)
    assert result.status == "completed"
    assert all((r.asked, r.answered, r.refused) == (2, 2, {}) for r in rounds)
    for one in sessions.values():
        ledger = one.releaser.budget.ledger(config.privacy)
        assert len(ledger.entries()) == INNER[inner] * len(rounds)
        assert ledger.spent() == pytest.approx(sum(costs), rel=1e-6)
        assert 0.5 * total < ledger.spent() <= total
    assert any(r.server["reward"] for r in rounds[1:])
