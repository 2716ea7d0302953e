"""What every strategy must keep to, whatever paper it comes from."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict

from common.arrays import Arrays, add, scale, sha256, sub, zeros_like
from common.config.run import RunConfig
from common.errors import QuorumError
from common.wire.codec import encode
from common.wire.messages import SCHEMA, EnrolRequest, TrainReply
from server.artifacts import RunDirectory
from server.enrolment import Enrolment
from server.evaluation import Evaluation
from server.events import Round
from server.grid import _summarize
from server.journal import Journal, restore
from server.roster import EnrolledClient
from server.state import RunState
from server.strategies.round import RoundStrategy, Trained
from tests.support.build import strategy_of
from tests.support.toys import METHODS, configured, instruction

NAMES = ("ann", "bob", "cyd", "dee")
NODES = {name: 10 + k for k, name in enumerate(NAMES)}
MODEL = {"encoder.w": np.array([[1.0, -2.0], [0.5, 3.0]], np.float32), "predictor.b": np.array([0.25], np.float32)}
VARIANTS: dict[str, RunConfig] = {
    **{method: configured(method, local_steps=3) for method in METHODS},
    "fedavg-momentum": configured("fedavg", momentum=0.9, server_lr=0.5),
    "fedavg-weighted": configured("fedavg", weighting="examples"),
    "fedrule-eq3": configured("fedrule", optimizer="sgd", control="eq3"),
    "fedrule-server-adam": configured("fedrule", server_optimizer="adam"),
    "fedga-ramp": configured("fedga", second_moment="ramp", local_steps=3),
    "fedga-quadratic-alone": configured("fedga", second_moment="quadratic", dra=False, local_steps=3),
}
IDENTITY = ("fedavg", "fedprox", "fedrule", "fedrule-eq3", "fedavg-weighted")
every_strategy = pytest.mark.parametrize("variant", VARIANTS)


class Server:
    """A strategy whose clients have enrolled, and what it reported."""

    def __init__(self, variant: str, min_replies: int = 1) -> None:
        federation = VARIANTS[variant].federation.model_copy(update={"min_replies": min_replies})
        self.config = VARIANTS[variant].model_copy(update={"federation": federation})
        self.enrolment = Enrolment(EnrolRequest("toy", "{}", "{}"), 0.0, lambda messages, seconds: [])
        for name, node in NODES.items():
            self.enrolment.roster.enrol(EnrolledClient(name, node, "toy:0", 3))
        self.trained: list[Trained] = []
        self.strategy = self.at(RunState(0, MODEL))

    def at(self, state: RunState) -> RoundStrategy:
        return strategy_of(
            self.config,
            state,
            enrolment=self.enrolment,
            on_trained=self.trained.append,
        )

    def round(self, *messages: Message) -> RunState:
        self.strategy.aggregate_train(1, list(messages))
        return self.strategy.state


def reply_of(name: str, number: int = 1, **changes: Any) -> TrainReply:
    """A client's reply, its numbers drawn from its name."""
    rng = np.random.default_rng(list(name.encode()))
    update: Arrays = {n: rng.normal(size=a.shape).astype(np.float32) for n, a in MODEL.items()}
    gradient = scale(update, 0.5)
    return replace(TrainReply(number, update, gradient, 0.5, NODES[name], 3), **changes)


def message_of(name: str, reply: TrainReply | RecordDict | None = None, number: int = 1) -> Message:
    content = reply if isinstance(reply, RecordDict) else encode(reply or reply_of(name, number))
    return Message(content, reply_to=instruction(NODES[name]))


def good(*names: str, number: int = 1) -> list[Message]:
    return [message_of(name, number=number) for name in names or NAMES]


def fingerprint(state: RunState) -> tuple[str, dict[str, str]]:
    return sha256(state.model), {key: sha256(arrays) for key, arrays in state.memory.items()}


@every_strategy
def test_the_order_of_replies_does_not_matter(variant: str) -> None:
    forth, back = Server(variant), Server(variant)
    assert fingerprint(forth.round(*good())) == fingerprint(back.round(*reversed(good())))


@pytest.mark.parametrize("variant", IDENTITY)
def test_of_one_client_the_model_is_its_own(variant: str) -> None:
    state = Server(variant).round(*good("bob"))
    assert sha256(state.model) == sha256(sub(MODEL, reply_of("bob").update))


@every_strategy
def test_a_zero_update_keeps_the_model(variant: str) -> None:
    zero = zeros_like(MODEL)
    replies = [message_of(name, reply_of(name, update=zero, gradient=zero)) for name in NAMES]
    assert sha256(Server(variant).round(*replies).model) == sha256(MODEL)


@every_strategy
def test_clients_that_agree_move_as_one(variant: str) -> None:
    alike = reply_of("ann", examples=1)
    many, one = Server(variant), Server(variant)
    many.round(*(message_of(name, alike) for name in NAMES))
    one.round(message_of("ann", alike))
    for name, a in many.strategy.state.model.items():
        np.testing.assert_allclose(a, one.strategy.state.model[name], rtol=1e-6)


@every_strategy
def test_nothing_handed_in_is_changed(variant: str) -> None:
    server = Server(variant)
    server.round(*good())
    before, replies = server.strategy.state, good(number=2)
    copied, sent = copy.deepcopy(before), [dict(m.content["fedloom"]) for m in replies]
    server.round(*replies)
    assert fingerprint(before) == fingerprint(copied)
    assert (before.round, before.counted) == (1, dict.fromkeys(NAMES, 1))
    assert [dict(message.content["fedloom"]) for message in replies] == sent


@every_strategy
def test_a_round_notes_who_counted(variant: str) -> None:
    server = Server(variant)
    server.round(*good())
    state = server.round(*good("bob", "dee", number=2))
    assert (state.round, state.counted) == (2, {"ann": 1, "bob": 2, "cyd": 1, "dee": 2})


def with_schema(version: int) -> RecordDict:
    record = encode(reply_of("cyd"))
    record["fedloom"] = ConfigRecord({**record["fedloom"], "wire.schema": version})  # type: ignore[dict-item]
    return record


def garbled() -> RecordDict:
    record = encode(reply_of("cyd"))
    record["fedloom"] = ConfigRecord({**record["fedloom"], "wire.arrays": b"torn"})  # type: ignore[dict-item]
    return record


def spoilt(value: float) -> Arrays:
    return {**reply_of("cyd").update, "predictor.b": np.array([value], np.float32)}


NARROW = {**MODEL, "encoder.w": MODEL["encoder.w"][:1]}
FAILURES: dict[str, tuple[Callable[[], TrainReply | RecordDict], str]] = {
    "NaN": (lambda: reply_of("cyd", update=spoilt(np.nan)), "update: non-finite numbers"),
    "infinity": (lambda: reply_of("cyd", update=spoilt(np.inf)), "update: non-finite numbers"),
    "NaN in the gradient": (lambda: reply_of("cyd", gradient=spoilt(np.nan)), "gradient: non-finite numbers"),
    "wrong shape": (lambda: reply_of("cyd", update=NARROW), "update: array 'encoder.w' is float32[1, 2], expected"),
    "wrong type": (
        lambda: reply_of("cyd", update={n: a.astype(np.float64) for n, a in MODEL.items()}),
        "update: array 'encoder.w' is float64[2, 2], expected float32[2, 2]",
    ),
    "missing array": (
        lambda: reply_of("cyd", update={"predictor.b": MODEL["predictor.b"]}),
        "['encoder.w'] are missing",
    ),
    "wrong round": (lambda: reply_of("cyd", number=7), "answered round 7 in round 1"),
    "no steps": (lambda: reply_of("cyd", steps=0), "claims 0 local steps on 12 records"),
    "no records": (lambda: reply_of("cyd", examples=-4), "claims 3 local steps on -4 records"),
    "wrong schema": (
        lambda: with_schema(1),
        f"schema version 1 differs from {SCHEMA} here; update the older side",
    ),
    "garbled": (garbled, "TrainReply: arrays cannot be decoded"),
    "empty": (RecordDict, "expected TrainReply, got"),
}


@every_strategy
@pytest.mark.parametrize(("make", "reason"), FAILURES.values(), ids=FAILURES.keys())
def test_a_reply_that_is_unusable_is_left_out_and_named(
    variant: str, make: Callable[[], TrainReply | RecordDict], reason: str
) -> None:
    server, without = Server(variant), Server(variant)
    server.round(*good("ann", "bob"), message_of("cyd", make()), *good("dee"))
    without.round(*good("ann", "bob", "dee"))
    assert fingerprint(server.strategy.state) == fingerprint(without.strategy.state)
    assert list(server.trained[0].rejected) == ["cyd"]
    assert reason in server.trained[0].rejected["cyd"]
    assert "cyd" not in server.strategy.state.counted


@every_strategy
def test_a_client_that_says_it_failed_is_left_out_named_and_invited_anew(variant: str) -> None:
    server = Server(variant)
    server.round(Message(Error(1000, "out of memory"), reply_to=instruction(NODES["cyd"])), *good("ann"))
    assert server.trained[0].rejected == {"cyd": "out of memory"}
    assert server.enrolment.roster.select_uninvited(NODES.values()) == [NODES["cyd"]]


@pytest.mark.parametrize("variant", ["fedrule", "fedrule-server-adam"])
def test_a_reply_without_the_gradient_that_the_method_needs_is_left_out(variant: str) -> None:
    server, without = Server(variant), Server(variant)
    server.round(*good("ann"), message_of("cyd", reply_of("cyd", gradient={})))
    without.round(*good("ann"))
    assert "gradient" in server.trained[0].rejected["cyd"]
    assert fingerprint(server.strategy.state) == fingerprint(without.strategy.state)


@every_strategy
def test_below_quorum_the_round_ends_with_the_reasons_and_the_state_stands(variant: str) -> None:
    server = Server(variant, min_replies=3)
    broken = message_of("cyd", reply_of("cyd", update=spoilt(np.nan)))
    lost = Message(Error(1000, "disk full"), reply_to=instruction(NODES["bob"]))
    with pytest.raises(QuorumError) as caught:
        server.round(*good("ann", "dee"), broken, lost)
    expected = "round 1: 2 usable replies, 3 needed; bob: disk full; cyd: update: non-finite numbers (NaN or infinity)"
    assert str(caught.value) == expected
    assert (server.strategy.state.round, sha256(server.strategy.state.model)) == (0, sha256(MODEL))
    assert server.trained == []


@every_strategy
def test_the_reported_loss_is_the_weighted_mean(variant: str) -> None:
    server = Server(variant)
    losses = {"ann": 1.0, "dee": 3.0}
    server.round(*(message_of(n, reply_of(n, loss=v)) for n, v in losses.items()))
    by_examples = server.config.method_options.weighting == "examples"
    weights = {"ann": 10, "dee": 13} if by_examples else {"ann": 1, "dee": 1}
    expected = sum(weights[n] * losses[n] for n in losses) / sum(weights.values())
    assert server.trained[0].loss == pytest.approx(expected, rel=1e-12)


@every_strategy
def test_a_checkpoint_holds_all_that_the_next_round_needs(variant: str, tmp_path: Path) -> None:
    server, folder = Server(variant), RunDirectory(tmp_path, "toy")
    server.round(*good())
    state = server.round(*good("ann", "bob", number=2))
    folder.create({}, {})
    Journal(folder, server.config, server.enrolment).record_training(Trained(state, 0.5, {}))

    checkpoint = folder.checkpoints.load_latest()
    assert checkpoint is not None
    restored = restore(checkpoint)
    assert fingerprint(restored) == fingerprint(state)
    assert (restored.round, restored.counted) == (2, state.counted)

    onwards = server.round(*good("bob", "cyd", number=3))
    server.strategy = server.at(restored)
    assert fingerprint(server.round(*good("bob", "cyd", number=3))) == fingerprint(onwards)


@pytest.mark.parametrize("variant", ["fedrule", "fedrule-server-adam", "fedrule-eq3"])
def test_fedrule_broadcasts_the_mean_of_each_clients_own_last_round(variant: str) -> None:
    server = Server(variant)
    server.round(*good())
    state = server.round(*good("ann", number=2))
    first, second = (server.strategy.shared(state.memory, number) for number in (1, 2))
    assert sorted(first) == sorted(second) == sorted(MODEL)
    assert server.strategy.shared(state.memory, 0) == {}
    if variant != "fedrule-eq3":
        assert sha256(second) == sha256(reply_of("ann").gradient)
    else:
        rate = server.config.method_options.lr
        for name, d in second.items():
            np.testing.assert_allclose(d, reply_of("ann").update[name] / (rate * 3), rtol=1e-6)


def test_weights_by_examples_are_the_clients_shares() -> None:
    state = Server("fedavg-weighted").round(*good("ann", "dee"))
    weighted = add(scale(reply_of("ann").update, 10 / 23), scale(reply_of("dee").update, 13 / 23))
    for name, a in sub(MODEL, weighted).items():
        np.testing.assert_allclose(state.model[name], a, rtol=1e-6)


@pytest.mark.parametrize("variant", ["fedavg"])
def test_when_the_superlink_answers_for_nodes_that_are_gone_the_clients_are_named(variant: str) -> None:
    """Flower signs such errors with its own node id, 1, all of them alike."""
    server = Server(variant)
    lost = [_from_superlink(node) for node in (NODES["bob"], NODES["cyd"])]
    exchange = _summarize([instruction(node) for node in NODES.values()], [*good("ann"), *lost, *good("dee")], 0.1)
    server.round(*exchange.replies)
    assert server.trained[0].rejected == {"bob": "Node Unavailable", "cyd": "Node Unavailable"}
    assert server.enrolment.roster.select_uninvited(NODES.values()) == [NODES["bob"], NODES["cyd"]]


def _from_superlink(node: int) -> Message:
    reply = Message(Error(3, "Node Unavailable"), reply_to=instruction(node))
    reply.metadata.__dict__["_src_node_id"] = 1
    return reply


@every_strategy
def test_rows_have_the_effect_of_whole_tables_and_those_that_do_not_fit_are_left_out(variant: str) -> None:
    """The second reply touches the first row only; the third's id is one too large."""
    half = {n: np.where(np.arange(len(a)) == 0, a.T, 0).T.astype(a.dtype) for n, a in reply_of("bob").update.items()}
    whole = reply_of("bob", update=half, gradient=half)
    ids = {"encoder.w@rows": np.array([0], np.int32), "encoder.w@values": half["encoder.w"][:1]}
    rows: Arrays = {"predictor.b": half["predictor.b"], **ids}
    wrong = {**rows, "encoder.w@rows": np.array([2], np.int32)}
    sent, plain = Server(variant), Server(variant)
    spoilt_rows = message_of("cyd", reply_of("cyd", update=wrong))
    sent.round(*good("ann"), message_of("bob", replace(whole, update=rows, gradient=rows)), spoilt_rows)
    plain.round(*good("ann"), message_of("bob", whole))
    assert fingerprint(sent.strategy.state) == fingerprint(plain.strategy.state)
    reason = "update: array 'encoder.w': row ids are out of range; the table has 2 rows"
    assert sent.trained[0].rejected == {"cyd": reason}


@pytest.mark.parametrize(("variant", "told"), [("fedga", 5), ("fedavg", 0)])
def test_the_rounds_line_carries_the_strategys_own_numbers(variant: str, told: int, tmp_path: Path) -> None:
    server, folder = Server(variant), RunDirectory(tmp_path, "toy")
    folder.create({}, {})
    server.round(*good())
    journal = Journal(folder, server.config, server.enrolment)
    journal.record_exchange(_summarize([instruction(node) for node in NODES.values()], [*good()], 0.1))
    journal.record_training(server.trained[0])
    journal.record_evaluation(1, Evaluation({}, {}))
    [line] = list(folder.events())
    assert isinstance(line, Round)
    assert line.server == server.trained[0].server
    assert len(line.server) == told
