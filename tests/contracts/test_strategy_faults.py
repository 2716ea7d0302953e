"""Invalid and failed replies in every strategy."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict

from common.arrays import Arrays, sha256
from common.errors import QuorumError
from common.wire.codec import encode
from common.wire.messages import SCHEMA, TrainReply
from server.exchange.grid import Answer, summarize_exchange
from tests.support.strategies import MODEL, NODES, Server, every_strategy, fingerprint, good, message_of, reply_of
from tests.support.toys import instruction


def with_schema(version: int) -> RecordDict:
    record = encode(reply_of("cyd"))
    record["fedloom"] = ConfigRecord({**record["fedloom"], "wire.schema": version})  # type: ignore[dict-item]
    return record


def damaged() -> RecordDict:
    record = encode(reply_of("cyd"))
    record["fedloom"] = ConfigRecord({**record["fedloom"], "wire.arrays": b"damaged"})  # type: ignore[dict-item]
    return record


def with_value(value: float) -> Arrays:
    return {**reply_of("cyd").update, "predictor.b": np.array([value], np.float32)}


NARROW = {**MODEL, "encoder.w": MODEL["encoder.w"][:1]}

FAILURES: dict[str, tuple[Callable[[], TrainReply | RecordDict], str]] = {
    "NaN": (lambda: reply_of("cyd", update=with_value(np.nan)), "update: non-finite numbers"),
    "infinity": (lambda: reply_of("cyd", update=with_value(np.inf)), "update: non-finite numbers"),
    "NaN in the gradient": (lambda: reply_of("cyd", gradient=with_value(np.nan)), "gradient: non-finite numbers"),
    "wrong shape": (lambda: reply_of("cyd", update=NARROW), "update: array 'encoder.w' is float32[1, 2], expected"),
    "wrong type": (
        lambda: reply_of("cyd", update={n: a.astype(np.float64) for n, a in MODEL.items()}),
        "update: array 'encoder.w' is float64[2, 2], expected float32[2, 2]",
    ),
    "missing array": (
        lambda: reply_of("cyd", update={"predictor.b": MODEL["predictor.b"]}),
        "['encoder.w'] are missing",
    ),
    "wrong round": (lambda: reply_of("cyd", number=7), "reply is of round 7, not of round 1"),
    "no steps": (lambda: reply_of("cyd", steps=0), "invalid reply: 0 local steps on 12 records"),
    "no records": (lambda: reply_of("cyd", examples=-4), "invalid reply: 3 local steps on -4 records"),
    "more steps than requested": (lambda: reply_of("cyd", steps=4000), "4000 local steps on 12 records; at most"),
    "more records than enrolled": (lambda: reply_of("cyd", examples=2**63 - 1), "at most 3 on 12 are possible"),
    "implausible loss": (lambda: reply_of("cyd", loss=1.7e308), "invalid reply: loss 1.7e+308"),
    "wrong schema": (lambda: with_schema(1), f"schema version 1 differs from {SCHEMA} here; update the older side"),
    "damaged": (damaged, "TrainReply: arrays cannot be decoded"),
    "empty": (RecordDict, "expected TrainReply, got"),
}


@every_strategy
@pytest.mark.parametrize(("make", "reason"), FAILURES.values(), ids=FAILURES.keys())
def test_an_invalid_reply_is_left_out_with_a_reason(
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
def test_a_failed_client_is_left_out_and_invited_again(variant: str) -> None:
    server = Server(variant)
    server.round(Message(Error(1000, "out of memory"), reply_to=instruction(NODES["cyd"])), *good("ann"))
    assert server.trained[0].rejected == {"cyd": "out of memory"}
    assert server.enrolment.roster.select_uninvited(NODES.values()) == [NODES["cyd"]]


@pytest.mark.parametrize("variant", ["fedrule", "fedrule-server-adam"])
def test_a_reply_without_a_required_gradient_is_left_out(variant: str) -> None:
    server, without = Server(variant), Server(variant)
    server.round(*good("ann"), message_of("cyd", reply_of("cyd", gradient={})))
    without.round(*good("ann"))
    assert "gradient" in server.trained[0].rejected["cyd"]
    assert fingerprint(server.strategy.state) == fingerprint(without.strategy.state)


@every_strategy
def test_a_round_below_the_quorum_fails_with_reasons_and_keeps_the_state(variant: str) -> None:
    server = Server(variant, min_replies=3)
    non_finite = message_of("cyd", reply_of("cyd", update=with_value(np.nan)))
    lost = Message(Error(1000, "disk full"), reply_to=instruction(NODES["bob"]))
    with pytest.raises(QuorumError) as caught:
        server.round(*good("ann", "dee"), non_finite, lost)
    expected = "round 1: 2 usable replies, 3 needed; bob: disk full; cyd: update: non-finite numbers (NaN or infinity)"
    assert str(caught.value) == expected
    assert (server.strategy.state.round, sha256(server.strategy.state.model)) == (0, sha256(MODEL))
    assert server.trained == []


@pytest.mark.parametrize("variant", ["fedavg"])
def test_errors_of_the_superlink_for_absent_nodes_name_the_clients(variant: str) -> None:
    """Flower signs such errors with its own node id, 1."""
    server = Server(variant)
    lost = [_from_superlink(node) for node in (NODES["bob"], NODES["cyd"])]
    answers = [Answer(message, 0.1) for message in (*good("ann"), *lost, *good("dee"))]
    exchange = summarize_exchange([instruction(node) for node in NODES.values()], answers, 0.1)
    server.round(*exchange.replies)
    assert server.trained[0].rejected == {"bob": "Node Unavailable", "cyd": "Node Unavailable"}
    assert server.enrolment.roster.select_uninvited(NODES.values()) == [NODES["bob"], NODES["cyd"]]


def _from_superlink(node: int) -> Message:
    reply = Message(Error(3, "Node Unavailable"), reply_to=instruction(node))
    reply.metadata.__dict__["_src_node_id"] = 1
    return reply


@every_strategy
def test_sparse_rows_equal_full_tables_and_invalid_ids_are_left_out(variant: str) -> None:
    """The second reply has the first row only; the third reply's id is out of range."""
    half = {n: np.where(np.arange(len(a)) == 0, a.T, 0).T.astype(a.dtype) for n, a in reply_of("bob").update.items()}
    whole = reply_of("bob", update=half, gradient=half)
    ids = {"encoder.w@rows": np.array([0], np.int32), "encoder.w@values": half["encoder.w"][:1]}
    rows: Arrays = {"predictor.b": half["predictor.b"], **ids}
    wrong = {**rows, "encoder.w@rows": np.array([2], np.int32)}
    sent, plain = Server(variant), Server(variant)
    invalid_rows = message_of("cyd", reply_of("cyd", update=wrong))
    sent.round(*good("ann"), message_of("bob", replace(whole, update=rows, gradient=rows)), invalid_rows)
    plain.round(*good("ann"), message_of("bob", whole))
    assert fingerprint(sent.strategy.state) == fingerprint(plain.strategy.state)
    reason = "update: array 'encoder.w': row ids are out of range; the table has 2 rows"
    assert sent.trained[0].rejected == {"cyd": reason}
