"""Chain of transforms: its order, and the values of each kind of release."""

from typing import Any, NoReturn

import numpy as np
import pytest
from safetensors.numpy import save

from client.privacy.budget import Reservation, finite_or_zeros, sort_bounds
from client.privacy.release import AddPseudoItems, to_sparse_rows
from client.privacy.transforms import (
    AdditiveNoise,
    InternalNoise,
    Plaintext,
    Released,
    Update,
    UpdateChain,
    Work,
    ZerosOnFailure,
)
from client.session import MODEL
from client.state import MemoryStore
from client.tasks.rules.learner import RulesLearner
from client.trainers.personalized import DittoTrainer
from client.training.local_round import DivergedError
from common.errors import WireError
from common.privacy.mechanisms import Gaussian
from common.wire.messages import AssignRequest, EvaluateRequest, TrainRequest
from tests.support.asked import Asked, configured

ARRAYS = {"update/w": np.arange(6, dtype=np.float32).reshape(3, 2)}


def reserved(client: Asked) -> Reservation:
    reservation = client.releaser.budget.reserve(
        client.config, TrainRequest(1, client.enrolled.enrolment, client.model, cost=0.1)
    )
    assert reservation
    return reservation


def seeded() -> np.random.Generator:
    return np.random.default_rng(0)


def test_steps_run_in_their_order() -> None:
    steps: list[str] = []

    def select(name: str, work: Work) -> Work:
        def wrapped() -> Update:
            update = work()
            steps.append(name)
            return update

        return wrapped

    def privatize(work: Work) -> Released:
        steps.append("reserved")
        released = Plaintext()(work)
        steps.append("released")
        return released

    def encode(name: str, released: Released) -> Released:
        steps.append(name)
        return released

    chain = UpdateChain(
        (lambda work: select("first", work), lambda work: select("second", work)),
        privatize,
        (lambda released: encode("third", released), lambda released: encode("fourth", released)),
    )

    def work() -> Update:
        steps.append("work")
        return Update(ARRAYS)

    chain(work)
    assert steps == ["reserved", "work", "first", "second", "released", "third", "fourth"]


def test_plaintext_passes_all_values() -> None:
    released = Plaintext()(lambda: Update(ARRAYS, examples=7, loss=0.5))
    assert (released.arrays, released.examples, released.loss) == (ARRAYS, 7, 0.5)


def test_noise_hides_examples_and_loss_and_leaves_row_ids() -> None:
    client = Asked(configured())
    ids = np.array([2, 5])
    exact = Update({**ARRAYS, "update/w@rows": ids}, frozenset({"update/w@rows"}), examples=7, loss=0.5)
    released = AdditiveNoise(reserved(client), seeded)(lambda: exact)
    assert (released.examples, released.loss) == (1, 0.0)
    assert released.arrays["update/w@rows"].tolist() == [2, 5]
    assert not (released.arrays["update/w"] == ARRAYS["update/w"]).any()
    [entry] = client.releaser.budget.ledger(client.config.privacy).entries()
    assert entry.terms.neighbours == "replace-one-same-items"


def test_without_a_number_to_send_nothing_is_charged() -> None:
    client = Asked(configured())
    assert AdditiveNoise(reserved(client), seeded)(lambda: Update({})).arrays == {}
    assert client.spent == 0


def test_noise_inside_the_work_is_charged_before_the_work() -> None:
    client = Asked(configured())
    spent: list[float] = []

    def work() -> Update:
        spent.append(client.spent)
        return Update(ARRAYS)

    released = InternalNoise(reserved(client), Gaussian(0.05, 1.0))(work)
    assert spent == [0.05]
    assert save(released.arrays) == save(ARRAYS)


@pytest.mark.parametrize(("failures", "error"), [(Exception, IndexError("7")), (DivergedError, DivergedError())])
def test_failed_work_becomes_zeros(failures: type[Exception], error: Exception) -> None:
    def work() -> Update:
        raise error

    zeros = Update({"update/w": np.zeros(2)})
    assert ZerosOnFailure(lambda: zeros, failures)(work)() is zeros


def test_other_failures_are_reported() -> None:
    def work() -> Update:
        raise IndexError

    with pytest.raises(IndexError):
        ZerosOnFailure(lambda: Update({}), DivergedError)(work)()


class Items:
    """Two of five items."""

    table = "w"

    def own_items(self, round_number: int) -> np.ndarray:
        return np.array([1, 3])


def test_pseudo_items_replace_the_table_by_named_rows() -> None:
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    update = AddPseudoItems(Items(), 1, 2, seeded)(lambda: Update({"update/w": table, "update/b": np.ones(1)}))()
    ids = update.arrays["update/w@rows"]
    assert update.ids == {"update/w@rows"}
    assert len(ids) == 4
    assert {1, 3} < set(ids.tolist())
    assert (update.arrays["update/w@values"] == table[ids]).all()
    assert update.arrays.keys() == {"update/b", "update/w@rows", "update/w@values"}


def test_tables_of_few_rows_are_encoded_sparsely() -> None:
    table = np.zeros((100, 4), np.float32)
    table[7] = 1
    released = to_sparse_rows(Released({"update/w": table}, examples=3))
    assert released.arrays["update/w@rows"].tolist() == [7]
    assert released.examples == 3


def test_values_that_are_not_finite_become_zeros() -> None:
    assert finite_or_zeros(np.array([1.0, np.nan])).tolist() == [0, 0]
    assert finite_or_zeros(np.array([1.0, 2.0])).tolist() == [1, 2]


def test_bounds_in_the_wrong_order_are_swapped() -> None:
    bounds = sort_bounds({"low": np.array([2.0, 0.0]), "high": np.array([1.0, 3.0]), "days": np.ones(1)})
    assert (bounds["low"].tolist(), bounds["high"].tolist()) == ([1, 0], [2, 3])
    assert sort_bounds({}) == {}


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
