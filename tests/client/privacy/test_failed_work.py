"""Failed work: released and charged as if it had not failed, so that a failure reveals nothing."""

from typing import Any, NoReturn

import numpy as np
import pytest

from client.session import MODEL
from client.state import MemoryStore
from client.tasks.rules.learner import RulesLearner
from client.trainers.personalized import DittoTrainer
from common.errors import WireError
from common.wire.messages import AssignRequest, EvaluateRequest
from tests.support.asked import Asked, configured


def failing(*about: object, **more: object) -> NoReturn:
    """As where one item of a person lies beyond the end of what the server sent."""
    raise IndexError("index 7 is out of bounds: Grandma's lamp")


def test_training_that_diverges_is_released_as_noise_and_charged() -> None:
    """Overflow of huge weights depends on the devices of a home."""
    client = Asked(configured("fedavg", clip=0.01))
    client.model = {name: np.full_like(a, 3e38) for name, a in client.model.items()}
    reply = client.train(1, 0.1)
    assert client.spent == pytest.approx(0.1)
    sizes = np.concatenate([a.ravel() for a in reply.update.values()])
    assert sizes.std() == pytest.approx(0.02 / np.sqrt(0.2), rel=0.2), "noise alone"
    assert client.train(1, 0.1).update.keys() == reply.update.keys()


@pytest.mark.parametrize(("method", "unit"), [("fedavg", "client"), ("fedrule", "client")])
def test_work_that_fails_is_released_and_charged_as_if_it_had_not(
    method: str, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a server that chooses what to fail on asks what it likes, for nothing."""
    as_ever, client = Asked(configured(method, unit=unit)), Asked(configured(method, unit=unit))
    monkeypatch.setattr(RulesLearner, "loss", failing)
    reply = client.train(1, 0.1)
    monkeypatch.undo()
    usual = as_ever.train(1, 0.1)
    assert client.spent == as_ever.spent > 0
    for mine, theirs in ((reply.update, usual.update), (reply.gradient, usual.gradient)):
        assert {n: (a.shape, a.dtype) for n, a in mine.items()} == {n: (a.shape, a.dtype) for n, a in theirs.items()}
    assert (reply.loss, reply.examples, reply.steps) == (usual.loss, usual.examples, usual.steps)


def test_work_that_fails_under_noise_on_records_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros without noise would pass for a release."""
    client = Asked(configured("fedavg", unit="record"))
    monkeypatch.setattr(RulesLearner, "loss", failing)
    with pytest.raises(IndexError):
        client.train(1, 0.1)


def test_a_disk_that_keeps_nothing_is_no_reason_to_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*about: Any) -> NoReturn:
        raise OSError(28, "No space left on device")

    client = Asked(configured("fedavg"))
    monkeypatch.setattr(MemoryStore, "save", full)
    with pytest.raises(OSError, match="No space left"):
        client.train(1, 0.1)
    assert client.spent == 0


def test_how_models_suit_is_answered_also_where_measuring_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Asked(configured("ifca"))
    models = {f"{key}/{name}": a for key in "01" for name, a in client.model.items()}
    monkeypatch.setattr(RulesLearner, "loss", failing)
    reply = client.session.assign(AssignRequest(1, client.enrolled.enrolment, models, "loss", cost=0.1))
    assert set(reply.losses) == {"0", "1"}
    assert client.spent == pytest.approx(0.1)


def test_an_evaluation_says_nothing_by_failing(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Asked(configured("fedavg"))
    short = {name: a[:1] for name, a in client.model.items()}
    with pytest.raises(WireError, match="the server's model"):
        client.session.evaluate(EvaluateRequest(1, client.enrolled.enrolment, short, "test", {}, final=True))
    monkeypatch.setattr(RulesLearner, "evaluate", failing)
    for final in (True, False):
        reply = client.session.evaluate(
            EvaluateRequest(1, client.enrolled.enrolment, client.model, "test", {}, final=final)
        )
        assert (reply.metrics, reply.weights) == ({}, {})
    assert client.session.store.read("toy", MODEL), "and the finished model is stored"
    assert client.spent == 0


def test_an_own_model_that_diverges_says_nothing_beside_noise_on_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is trained on the same records and paid by nobody, so an answer must not depend on it."""
    config = configured("ditto", unit="record", sample=0.5)
    usual, client = Asked(config), Asked(config)
    pull = DittoTrainer.pull

    def overflow(*about: Any) -> Any:
        return {name: g * float("inf") for name, g in pull(*about).items()}

    expected = usual.train(1, 0.1)
    monkeypatch.setattr(DittoTrainer, "pull", overflow)
    reply = client.train(1, 0.1)
    assert all((reply.update[name] == expected.update[name]).all() for name in expected.update)
    assert any(a.any() for a in reply.update.values())
