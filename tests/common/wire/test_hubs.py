"""Messages of hubs: round trips, and records of any content."""

import random
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, RecordDict

from common.contribution import Contribution, Member
from common.errors import WireError
from common.wire.codec import RECORD, decode, encode
from common.wire.hubs import address, addressees, is_from_hub, join_answers, read_sum, split_answers, sum_of, write_sum
from common.wire.messages import FAILED, REFUSED, EvaluateReply, TrainReply, TrainRequest

REQUEST = TrainRequest(3, "toy:0", {"w": np.arange(4, dtype=np.float32)})


def test_a_request_names_the_clients_that_it_is_for() -> None:
    sent = address(encode(REQUEST), ["ward/a", "ward/b"])
    assert addressees(sent) == ["ward/a", "ward/b"]
    assert decode(TrainRequest, sent).model["w"].tolist() == [0, 1, 2, 3]
    assert addressees(encode(REQUEST)) == []


def test_each_answer_arrives_as_it_was() -> None:
    trained = encode(TrainReply(3, {"w": np.ones(2, np.float32)}, {}, 0.5, 7, 2))
    measured = encode(EvaluateReply(3, {"auc": 0.7}, {"auc": 4.0}))
    answers = {"ward/a": trained, "ward/b": Error(REFUSED, "paused"), "ward/c": measured, "ward/d": Error(FAILED, "")}
    reply = join_answers(answers)
    assert is_from_hub(reply)
    assert not is_from_hub(trained)
    assert len(reply) == 1
    found = split_answers(reply)
    assert list(found) == list(answers)
    assert (found["ward/a"], found["ward/c"]) == (trained, measured)
    assert [(e.code, e.reason) for e in found.values() if isinstance(e, Error)] == [(REFUSED, "paused"), (FAILED, "")]


@pytest.mark.parametrize("names", [["a", "a"], [""], ["x" * 201], [], [1], "a", b"a"])
def test_malformed_names_are_refused(names: Any) -> None:
    config = dict(encode(REQUEST)[RECORD]) | {"hub.clients": names}
    with pytest.raises(WireError):
        addressees(RecordDict({RECORD: ConfigRecord(config)}))


VALUES: list[Any] = [0, -1, 2**62, 1e300, float("nan"), True, "", "a/b", "x" * 300, b"\x00", [0], ["a", "a"], [1.5], []]
KEYS = [
    *("hub.clients", "hub.summed", "hub.sums", "hub.codes", "hub.reasons"),
    *("wire.schema", "wire.payload", "0/round", "1/wire.arrays", "9/x", "/", "0/"),
]


def test_records_of_any_content_are_read_or_refused_with_a_reason() -> None:
    chance, outcomes = random.Random(0), [0, 0]
    valid = dict(join_answers({"w/a": encode(EvaluateReply(1, {}, {})), "w/b": Error(FAILED, "x")})[RECORD])
    for _ in range(10_000):
        config: dict[str, Any] = dict(valid)
        for _ in range(chance.randint(1, 3)):
            key = chance.choice(KEYS)
            if chance.random() < 0.3:
                config.pop(key, None)
            else:
                config[key] = chance.choice([*VALUES, config.get(chance.choice(KEYS), 0)])
        try:
            content = RecordDict({RECORD: ConfigRecord(config)})
            found = split_answers(content)
            sum_of(content)
        except WireError:
            outcomes[0] += 1
            continue
        outcomes[1] += 1
        for answer in found.values():
            if isinstance(answer, RecordDict):
                try:
                    decode(EvaluateReply, answer)
                except WireError:
                    continue
    assert min(outcomes) > 500


def test_sums_of_any_bytes_are_read_or_refused_with_a_reason() -> None:
    chance, sums, outcomes = random.Random(0), Contribution(), [0, 0]
    members = [Member(f"w/{k}", steps=2, lengths={"update": 1.0, "gradient": 1.0}) for k in range(3)]
    sums.add_stack(members, np.ones(3), {"w": np.ones((3, 4), np.float32)}, {"w": np.ones((3, 4), np.float32)})
    valid = write_sum(sums)
    assert read_sum(valid, members).to_arrays().keys() == sums.to_arrays().keys()
    for _ in range(10_000):
        blob = bytearray(valid[: chance.choice([len(valid), len(valid), chance.randrange(len(valid))])])
        for _ in range(chance.randint(0, 3)):
            if blob:
                blob[chance.randrange(len(blob))] = chance.randrange(256)
        try:
            read_sum(bytes(blob), members)
            outcomes[1] += 1
        except WireError:
            outcomes[0] += 1
    assert min(outcomes) > 500
