"""Resumed runs with noise: they continue as planned and never exceed the budget."""

from pathlib import Path
from typing import Any

import pytest

from client.owner.policy import Policy
from client.privacy.ledger.database import Slot
from client.session import MODEL, Session
from client.training.participant import Participant
from common.config.run import RunConfig
from common.errors import QuorumError, RefusedError
from common.privacy.mechanisms import Gaussian
from server.aggregation.metrics import Evaluation
from server.planning.planner import RoundDecision, read_round_decision
from server.planning.state import unpack_values
from server.record.folder import RunDirectory
from server.record.journal import Journal
from server.round.round import Round
from tests.support.owners import PLANNERS, Owners, costs_of, judge_by_loss, listening, noisy, owners, total_of
from tests.support.sensors import rounds_of


class PowerCutError(Exception):
    """Simulated stop of the server."""


def stopped_run(
    clients: Owners, config: RunConfig, folder: Path, after: tuple[str, int], patch: pytest.MonkeyPatch
) -> None:
    """Run until the server stops after it has recorded a step of a round."""
    step, last = after
    noted = getattr(Journal, step)

    def note(journal: Journal, *recorded: Any) -> None:
        noted(journal, *recorded)
        about = recorded[-1] if step == "record_observation" else recorded[0].state
        if about.round == last:
            raise PowerCutError

    with patch.context() as during:
        during.setattr(Journal, step, note)
        with pytest.raises(PowerCutError):
            clients.run(config, folder)


@pytest.mark.parametrize("method", list(PLANNERS))
def test_a_resumed_run_equals_an_uninterrupted_one(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = noisy(tmp_path, method, **PLANNERS[method])
    through = owners().run(config, tmp_path / "through")
    clients = owners()
    stopped_run(clients, config, tmp_path / "stopped_run", ("record_observation", 4), monkeypatch)
    resumed = clients.run(config.model_copy(update={"resume": True}), tmp_path / "stopped_run")
    assert costs_of(tmp_path / "stopped_run") == pytest.approx(costs_of(tmp_path / "through"), rel=1e-12)
    assert (resumed.model_sha256, resumed.reason) == (through.model_sha256, through.reason)
    assert resumed.privacy.epsilon_spent_max == pytest.approx(through.privacy.epsilon_spent_max)


def test_a_crash_between_charge_and_aggregation_does_not_exceed_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, clients = noisy(tmp_path, "bgtplanner", **PLANNERS["bgtplanner"]), owners()
    stopped_run(clients, config, tmp_path, ("record_training", 3), monkeypatch)
    before = clients.spent(config)
    resumed = clients.run(config.model_copy(update={"resume": True}), tmp_path)
    assert resumed.status == "completed"
    assert all(before[name] < spent <= total_of(config) for name, spent in clients.spent(config).items())


@pytest.mark.parametrize("paid", [True, False])
def test_a_round_decided_before_a_crash_is_requested_again_unchanged(
    paid: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients have 2.4 even shares and are charged 1.3; the remaining budget allows a different cost only."""
    config = noisy(tmp_path, "bgtplanner", seed=2, arms=2, t0=1, t_min=0.77)
    steady, clients, last = owners(), owners(), 6
    through = steady.run(config, tmp_path / "through")
    costs, even = costs_of(tmp_path / "through"), total_of(config) / 8
    assert costs[last - 1] == pytest.approx(even / 0.77)
    assert even < total_of(config) - sum(costs[:last]) < even / 0.77

    decided, aggregated = Journal.record_decision, Round.aggregate_train

    def note(journal: Journal, decision: RoundDecision) -> None:
        decided(journal, decision)
        if decision.number == last and not paid:
            raise PowerCutError

    def take(strategy: Round, server_round: int, replies: Any) -> Any:
        if strategy.state.round + 1 == last:
            raise PowerCutError
        return aggregated(strategy, server_round, replies)

    with monkeypatch.context() as during:
        during.setattr(Journal, "record_decision", note)
        during.setattr(Round, "aggregate_train", take)
        with pytest.raises(PowerCutError):
            clients.run(config, tmp_path / "stopped_run")
    before = sum(costs[: last if paid else last - 1])
    assert clients.spent(config) == pytest.approx(dict.fromkeys(steady.spent(config), before), rel=1e-6)
    stored = read_round_decision(RunDirectory(tmp_path / "stopped_run", "toy").decision())
    assert (stored.number, stored.failed) == (last, False)
    assert stored.decision.cost == pytest.approx(costs[last - 1], rel=1e-12)
    assert stored.left == pytest.approx(dict.fromkeys(stored.left, total_of(config) - sum(costs[: last - 1])))

    resumed = clients.run(config.model_copy(update={"resume": True}), tmp_path / "stopped_run")
    assert resumed.status == "completed"
    assert resumed.reason == through.reason == "ended early: no client can pay another round"
    assert costs_of(tmp_path / "stopped_run") == pytest.approx(costs, rel=1e-12)
    assert clients.spent(config) == pytest.approx(steady.spent(config), rel=1e-9)
    assert resumed.model_sha256 == through.model_sha256
    assert [line.answered for line in rounds_of(tmp_path / "stopped_run")] == [3] * len(costs)


@pytest.mark.parametrize("drained", [False, True])
def test_a_failed_round_is_requested_again_unless_too_few_clients_can_pay(
    drained: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of three clients refuses: temporarily, or because another run has used its budget."""
    config = noisy(tmp_path, "bgtplanner", federation__min_replies=3, **PLANNERS["bgtplanner"])
    clients, answered = owners(), Session.release
    folder, again = RunDirectory(tmp_path, "toy"), config.model_copy(update={"resume": True})

    def refuse(session: Session, participant: Participant, work: Any) -> Any:
        if session.client == "client-1" and participant.request.round == 4:
            raise RefusedError("not now")
        return answered(session, participant, work)

    with monkeypatch.context() as during:
        during.setattr(Session, "release", refuse)
        with pytest.raises(QuorumError, match="not now"):
            clients.run(config, tmp_path)
    assert read_round_decision(folder.decision()).failed
    if drained:
        ledger = next(one for one in clients.sessions.values() if one.client == "client-1").releaser.budget.ledger(
            config.privacy
        )
        ledger.release(Slot("another", 1), ledger.terms(Gaussian(ledger.remaining(), 1.0)), lambda: b"noise")
    resumed = clients.run(again, tmp_path)
    assert resumed.status == "completed"
    assert (resumed.rounds_done == 3, "2 clients can pay another round" in resumed.reason) == (drained, drained)


def test_simulated_clients_without_ledgers_do_not_exceed_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = noisy(tmp_path)
    stopped_run(owners(), config, tmp_path, ("record_observation", 5), monkeypatch)
    forgetful = owners()
    resumed = forgetful.run(config.model_copy(update={"resume": True, "rounds": 20}), tmp_path)
    assert sum(costs_of(tmp_path)) <= total_of(config) * (1 + 1e-9)
    assert max(forgetful.spent(config).values()) <= 3 / 8 * total_of(config)
    assert resumed.reason == "ended early: no client can pay another round"


@pytest.mark.parametrize("method", ["uniform", "fedavg"])
def test_a_run_completes_after_all_rounds_are_charged(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, clients = noisy(tmp_path, method), owners()
    stopped_run(clients, config, tmp_path, ("record_training", 8), monkeypatch)
    before = clients.spent(config)
    resumed = clients.run(config.model_copy(update={"resume": True}), tmp_path)
    assert (resumed.status, resumed.rounds_done, clients.spent(config)) == ("completed", 8, before)
    assert resumed.metrics
    assert all(store.read("toy", MODEL) for store in clients.stores.values())
    late = noisy(tmp_path, method, run_id="another", privacy__epsilon=9.0)
    assert before == pytest.approx(dict.fromkeys(before, total_of(config)), rel=1e-6)
    assert total_of(late) > total_of(config)


def test_clients_whose_metrics_were_sent_before_a_crash_are_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = noisy(tmp_path)
    stopped_run(owners(), config, tmp_path, ("record_observation", 5), monkeypatch)
    silent = owners(policy=Policy(share_metrics="never")).run(config.model_copy(update={"resume": True}), tmp_path)
    assert "metrics: 3 clients send theirs in plaintext, as their policies allow" in silent.privacy.uncovered


def test_the_test_split_does_not_change_the_plan_of_an_extended_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[Evaluation] = []
    judge_by_loss(monkeypatch)
    monkeypatch.setattr(Journal, "record_evaluation", listening(recorded))
    owners().run(noisy(tmp_path, stop="plateau", tasks__rules__validation_share=0.3), tmp_path)
    lines = rounds_of(tmp_path)
    assert [line.split for line in lines[-2:]] == ["validation", "test"]
    assert ["reward" in line.server for line in lines[-2:]] == [True, False]
    checkpoint = RunDirectory(tmp_path, "toy").checkpoints.load_latest()
    assert checkpoint is not None
    held_out, tested = ({name: value for name, (value, _) in one.values_of("loss").items()} for one in recorded[-2:])
    assert unpack_values(checkpoint.groups["planner_seen"]) == held_out != tested
