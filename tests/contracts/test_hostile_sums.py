"""Sums of hubs that cannot be true: the hub's clients are left out with a reason, and the run continues."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from common.contribution import UPDATE, Contribution, Member
from common.wire.codec import RECORD
from common.wire.hubs import read_sum, sum_of, write_sum
from common.wire.messages import TRAIN
from server.run import run
from studies.lies.liars import Lie
from tests.support.hubs import NodeGrid, lying, settings, split
from tests.support.owners import owners
from tests.support.sensors import rounds_of


def summed(change: Callable[[Contribution], None], lengths: float = 1.0) -> Lie:
    """Return the lie that changes the sum of a hub, and multiplies the lengths of its replies."""

    def lie(reply: Message) -> Message:
        total = sum_of(reply.content)
        assert total is not None
        sums = read_sum(total.content, [Member(name) for name in total.clients])
        change(sums)
        stretched = [{kind: length * lengths for kind, length in member.lengths.items()} for member in sums.members]
        sums.members = [replace(member, lengths=own) for member, own in zip(sums.members, stretched, strict=True)]
        return _with(reply, {"hub.sums": write_sum(sums)})

    return lie


def entry(**changed: object) -> Lie:
    return lambda reply: _with(reply, {f"hub.{key}": value for key, value in changed.items()})


def _with(reply: Message, entries: dict[str, object]) -> Message:
    reply.content = RecordDict({RECORD: ConfigRecord({**reply.content[RECORD], **entries})})
    return reply


def fill(sums: Contribution, value: float) -> None:
    next(iter(sums.sums[UPDATE].values())).flat[0] = value


def weigh(sums: Contribution, weight: float) -> None:
    sums.weight = weight


def move(sums: Contribution, steps: int) -> None:
    sums.weighted_steps = steps * sums.weight


def drop(sums: Contribution) -> None:
    sums.sums[UPDATE].popitem()


LIES: dict[str, tuple[Lie, str]] = {
    "NaN": (summed(lambda s: fill(s, float("nan"))), "non-finite numbers"),
    "longer than its parts": (summed(lambda s: fill(s, 1e9)), "sum of updates has norm 1e\\+09, its parts"),
    "a weight of 1e300": (summed(lambda s: weigh(s, 1e300)), "its weight is 1e\\+300"),
    "a weight of NaN": (summed(lambda s: weigh(s, float("nan"))), "its weight is nan"),
    "no steps": (summed(lambda s: move(s, 0)), "its local steps are 0, and"),
    "an array fewer": (summed(drop), "sum of updates: arrays"),
    "no lengths": (entry(sums=write_sum(Contribution())), "no lengths of updates"),
    "other steps": (summed(lambda s: move(s, 7)), "its local steps are"),
    "no gradient": (summed(lambda s: s.sums["gradient"].clear()), "sum of gradients: arrays"),
    "no types": (summed(lambda s: s.dtypes.clear()), "types of its arrays"),
    "infinite lengths": (summed(lambda s: None, lengths=float("inf")), "norm|not a finite number"),
    "a stranger": (entry(summed=["a/client-0", "b/client-1"]), "'b/client-1', which the reply does not name"),
    "one name fewer": (entry(summed=["a/client-0"]), "a length for each of 1 clients"),
    "a name twice": (entry(summed=["a/client-0"] * 2), "twice"),
    "no sum": (entry(sums=0), "names and no arrays"),
    "garbage": (entry(sums=b"\x08\x00\x00"), "the sum cannot be decoded"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_sum_that_cannot_be_true_is_left_out_with_a_reason(name: str, tmp_path: Path) -> None:
    lie, reason = LIES[name]
    liar, honest = split(owners(5))
    config = settings(tmp_path, rounds=1, federation__min_clients=3)
    assert run(NodeGrid({**honest, 8: lying(liar, TRAIN, lie)}), config, tmp_path).status == "completed"
    [event] = rounds_of(tmp_path)
    assert event.answered == 3
    for client in ("a/client-0", "a/client-3"):
        assert re.search(reason, event.refused[client]), event.refused


def test_a_sum_that_was_not_asked_for_is_left_out(tmp_path: Path) -> None:
    liar, honest = split(owners(5))

    def sums(message: Message) -> Message:
        if message.metadata.message_type == TRAIN:
            _with(message, {"hub.answer": "sums"})
        return liar.respond(message)

    config = settings(tmp_path, rounds=1, federation__min_clients=3, federation__answer="replies")
    run(NodeGrid({**honest, 8: sums}), config, tmp_path)
    [event] = rounds_of(tmp_path)
    assert "it sends a sum in place of replies" in event.refused["a/client-0"]
    assert event.answered == 3
