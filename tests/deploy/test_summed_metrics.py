"""Runs whose metrics are in secure sums: means, verdicts, choices by metrics, and refusals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from client.owner.policy import Policy
from client.training.comparison import MEASURED, from_document
from common.errors import QuorumError, RefusedError
from common.metrics import power_of
from common.secure.terms import SumTerms
from common.wire.codec import decode
from common.wire.messages import EVALUATE, OPEN, EvaluateReply, EvaluateRequest
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from tests.support.sum_runs import MIN_SUM, POLICY, SumFederation, noised, summed

VALIDATED = {"tasks__rules__validation-share": 0.3}
OWNERS = POLICY.model_copy(update={"share_metrics": "summed"})


def spied(federation: SumFederation) -> list[EvaluateReply]:
    """Return the replies to evaluations of the runs that follow."""
    sent: list[EvaluateReply] = []

    def record(message: Message) -> Message:
        if message.metadata.message_type == EVALUATE and message.has_content():
            sent.append(decode(EvaluateReply, message.content))
        return message

    federation.grid.after = record
    return sent


def rounds(folder: Path) -> list[RoundEvent]:
    return [event for event in RunDirectory(folder, "toy").events() if isinstance(event, RoundEvent)]


@pytest.mark.parametrize("policy", ["without_noise", "summed", "always"])
def test_metrics_are_plain_means_over_clients(policy: str, tmp_path: Path) -> None:
    owners = POLICY.model_copy(update={"share_metrics": policy})
    local = SumFederation(tmp_path / "local").run(summed(trust="local"))
    federation = SumFederation(tmp_path / "helpers", policy=owners)
    sent = spied(federation)
    result = federation.run(summed())
    assert result.metrics.keys() == local.metrics.keys()
    for key, value in result.metrics.items():
        of_clients = [client.metrics[key] for client in local.clients.values() if key in client.metrics]
        power = power_of(key)
        assert value == pytest.approx(np.mean(np.power(of_clients, power)) ** (1 / power), abs=1e-4), key
    assert result.summed is not None
    assert (result.summed.clients, result.summed.noise, local.summed) == (4, 0.0, None)
    assert len(sent) == 12
    assert not any(reply.metrics or reply.weights or reply.paired for reply in sent)
    assert not any(client.metrics for client in result.clients.values())


def test_the_verdict_is_that_of_single_replies(tmp_path: Path) -> None:
    alone = {"federation__compare-alone": True, **VALIDATED}
    local = SumFederation(tmp_path / "local").run(summed(trust="local", **alone)).verdict
    found = SumFederation(tmp_path / "helpers", policy=OWNERS).run(summed(**alone)).verdict
    assert local is not None
    assert found is not None
    assert found.uses == local.uses
    assert sum(local.uses.values()) == local.units
    assert (found.units, found.wins_simple, found.wins_alone) == (local.units, local.wins_simple, local.wins_alone)
    assert found.mean_simple == pytest.approx(local.mean_simple, abs=1e-4)
    assert found.mean_alone == pytest.approx(local.mean_alone, abs=1e-4)


def test_the_best_validated_round_is_chosen_and_tested(tmp_path: Path) -> None:
    diverging = {"algorithm__fedavg__lr": 500.0, "federation__norm-bound": 0.0}
    result = SumFederation(tmp_path, policy=OWNERS).run(summed(rounds=4, **VALIDATED, **diverging))
    assert result.best is not None
    assert (result.best.split, result.best.round < 4) == ("validation", True)
    assert result.best.test.keys() == result.metrics.keys()
    assert [event.split for event in rounds(tmp_path)] == [*["validation"] * 3, "test"]


def test_a_run_stops_early_by_summed_metrics(tmp_path: Path) -> None:
    stop = {"federation__stop": 1, "federation__min-delta": 1.0}
    result = SumFederation(tmp_path, policy=OWNERS).run(summed(rounds=5, **VALIDATED, **stop))
    assert (result.rounds_done, result.status) == (2, "completed")
    assert "has not improved" in result.reason
    assert result.metrics


def test_too_few_sharing_clients_have_no_metrics_and_keep_the_model(tmp_path: Path) -> None:
    federation = mixed(tmp_path, Policy(**{**POLICY.model_dump(), "share_metrics": "never"}), sharing=MIN_SUM - 1)
    result = federation.run(summed())
    assert (result.status, result.metrics, result.summed) == ("completed", {}, None)
    assert not federation.sums("evaluate")


def mixed(folder: Path, others: Policy, sharing: int) -> SumFederation:
    """Return a federation in which so many clients share their metrics."""
    federation = SumFederation(folder, policy=OWNERS)
    for session in list(federation.sessions.values())[sharing:]:
        session.policy = session.releaser.policy = others
    return federation


@pytest.mark.parametrize(("share", "policy"), [(0.2, "summed"), (0.2, "without_noise"), (0.0, "summed")])
def test_noise_covers_the_metrics_of_the_final_model_alone(share: float, policy: str, tmp_path: Path) -> None:
    owners = POLICY.model_copy(update={"share_metrics": policy})
    federation, config = SumFederation(tmp_path, policy=owners), noised(5000.0, **{"privacy__metric-share": share})
    sent = spied(federation)
    result = federation.run(config)
    is_summed = bool(share) and policy == "summed"
    assert not any(reply.metrics or reply.weights or reply.paired for reply in sent)
    assert [bool(event.metrics) for event in rounds(tmp_path)] == [False, False, is_summed]
    assert (result.summed is not None) == is_summed
    for session in federation.sessions.values():
        entries = session.releaser.budget.ledger(config.privacy).entries()
        assert [entry.slot.kind for entry in entries] == ["update"] * 3 + ["metrics"] * is_summed
        of_metrics = sum(entry.terms.cost for entry in entries if entry.slot.kind == "metrics")
        of_updates = sum(entry.terms.cost for entry in entries if entry.slot.kind == "update")
        assert of_metrics == pytest.approx(of_updates * share / (1 - share) * is_summed, rel=0.05)


def test_noised_metrics_are_those_of_the_verdict_and_near_the_exact_ones(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)
    result = federation.run(noised(5000.0, **{"privacy__metric-share": 0.2}))
    own = [from_document(session.store.read("toy", MEASURED)).metrics for session in federation.sessions.values()]
    assert result.summed is not None
    assert result.metrics.keys() == {"hr20_shown", "hr20_shown_frequency"}
    assert 0 < result.summed.noise < 0.1
    for key in result.metrics:
        assert abs(result.metrics[key] - np.mean([one[key] for one in own])) < 8 * result.summed.noise


def test_a_client_sends_no_metrics_without_terms_and_none_of_an_earlier_model_under_noise(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, policy=POLICY.model_copy(update={"share_metrics": "without_noise"}))
    asked = captured(federation)
    federation.run(summed())
    assert not federation.sessions[1].evaluate(replace(asked[-1], terms="")).metrics
    noisy = SumFederation(tmp_path / "noise", policy=OWNERS)
    asked = captured(noisy)
    noisy.run(noised(**{"privacy__metric-share": 0.2}))
    with pytest.raises(RefusedError, match="does not announce sums of metrics of this model"):
        noisy.sessions[1].evaluate(replace(asked[-1], final=False))
    with pytest.raises(RefusedError, match="on other terms"):
        noisy.sessions[1].evaluate(replace(asked[-1], terms=other_terms(asked[-1].terms)))


def captured(federation: SumFederation) -> list[EvaluateRequest]:
    """Return the evaluation requests of the runs that follow."""
    asked: list[EvaluateRequest] = []

    def record(message: Message) -> None:
        if message.metadata.message_type == EVALUATE:
            asked.append(decode(EvaluateRequest, message.content))

    federation.grid.before = record
    return asked


def other_terms(text: str) -> str:
    terms = SumTerms.from_json(text)
    return replace(terms, most=terms.most * 2).to_json()


def test_a_helper_that_is_silent_in_an_evaluation_stops_the_run_and_a_resumed_one_measures(tmp_path: Path) -> None:
    federation, config = SumFederation(tmp_path), summed()
    opened: list[int] = []

    def lose(message: Message) -> Message | None:
        if message.metadata.message_type == OPEN:
            opened.append(message.metadata.src_node_id)
        return None if len(opened) > 6 else message  # two helpers; two sums in round 1, one in round 2

    federation.grid.after = lose
    with pytest.raises(QuorumError, match="does not answer"):
        federation.run(config)
    federation.connect()
    result = federation.run(config, resume=True)
    assert (result.status, result.rounds_done) == ("completed", 3)
    assert [event.round for event in rounds(tmp_path)] == [1, 2, 3]
    assert all(event.metrics for event in rounds(tmp_path))
