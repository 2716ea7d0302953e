"""Replies taken as they arrive: the same bits as from replies at once, in memory that does not grow with their number."""

import os
import stat
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from common.arrays import Arrays, sha256
from common.errors import QuorumError
from common.wire.codec import encode
from server.clients.roster import EnrolledClient
from server.exchange.grid import content_size
from server.round.checks import LossWatch
from server.round.spool import Spool
from server.round.state import RunState
from tests.contracts.test_steps_taken_back import Judges, evaluate
from tests.support.strategies import MODEL, NAMES, VARIANTS, Server, fingerprint, good, message_of, reply_of
from tests.support.toys import instruction

streaming = pytest.mark.parametrize("variant", [name for name, one in VARIANTS.items() if one.capabilities.sum_only])


def taken(server: Server, messages: Sequence[Message], folder: Path, order: Sequence[int] = ()) -> list[Message]:
    """Return the messages after they arrived, in an order, at a server that has all their arrays on disk."""
    server.listen()
    assert server.intake.spool is not None
    server.intake.spool = Spool(folder, most=0)
    for k in order or range(len(messages)):
        before = content_size(messages[k].content)
        server.intake.take(messages[k].metadata.src_node_id, messages[k])
        assert content_size(messages[k].content) == before
    return [*messages]


def unequal() -> list[Message]:
    """Return replies after different numbers of local steps, and one that is invalid."""
    replies = [reply_of(name, steps=k % 3 + 1) for k, name in enumerate(NAMES)]
    replies[1] = replace(replies[1], update={n: a * np.nan for n, a in MODEL.items()})
    return [message_of(name, reply) for name, reply in zip(NAMES, replies, strict=True)]


@streaming
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
@pytest.mark.parametrize("make", [good, unequal])
def test_any_order_of_arrival_has_the_bits_of_all_replies_at_once(
    variant: str, order: tuple[int, ...], make: Callable[[], list[Message]], tmp_path: Path
) -> None:
    at_once, streamed = Server(variant), Server(variant)
    expected = at_once.round(*make())
    arrived = taken(streamed, make(), tmp_path, order)
    assert fingerprint(streamed.round(*arrived)) == fingerprint(expected)
    assert streamed.trained[0].loss == at_once.trained[0].loss
    assert streamed.trained[0].rejected == at_once.trained[0].rejected
    assert streamed.strategy.state.reply_memory == expected.reply_memory


def test_a_step_is_taken_back_in_both_ways_alike(tmp_path: Path) -> None:
    """The outlier is found among updates on disk."""
    ends = []
    for is_streamed in (False, True):
        server, watch = Server("fedavg"), LossWatch()
        watch.record(1.0)
        server.change(norm_bound=0.0)
        server.watch(watch)
        far = message_of("cyd", reply_of("cyd", update={n: a * 0 + 50 for n, a in MODEL.items()}))
        messages = [*good("ann", "bob", "dee"), far]
        server.round(*(taken(server, messages, tmp_path) if is_streamed else messages))
        evaluate(server, Judges(limit=20.0))
        ends.append((fingerprint(server.strategy.state), server.trained[-1].rejected))
    assert ends[0] == ends[1]
    assert [*ends[0][1]] == ["cyd"]


def test_too_few_usable_replies_are_named_as_ever(tmp_path: Path) -> None:
    server = Server("fedavg", min_replies=4)
    with pytest.raises(QuorumError, match="non-finite"):
        server.round(*taken(server, unequal(), tmp_path))


def test_robust_rules_get_all_replies(tmp_path: Path) -> None:
    robust = VARIANTS["fedavg"].model_copy(
        update={"federation": VARIANTS["fedavg"].federation.model_copy(update={"robust": "median", "min_replies": 3})}
    )
    server = Server("fedavg")
    server.config = robust
    server.strategy = server.at(RunState(0, MODEL))
    server.listen()
    messages = good()
    for message in messages:
        server.intake.take(message.metadata.src_node_id, message)
    median = np.median([reply_of(name).update["predictor.b"] for name in NAMES], axis=0)
    after = server.round(*messages).model["predictor.b"]
    np.testing.assert_allclose(after, MODEL["predictor.b"] - median, rtol=1e-6)


def test_memory_does_not_grow_with_replies(tmp_path: Path) -> None:
    """Of 8 or 80 replies of 400 kB each, four are in memory; the server works with few more."""
    peaks = {count: _peak(count, tmp_path) for count in (80, 8, 80)}  # the first one also imports what judges replies
    assert peaks[80] < 1.1 * peaks[8] < 14 * 400_000


def _peak(count: int, folder: Path) -> int:
    server, model = Server("fedavg"), {"w": np.zeros(100_000, np.float32)}
    server.strategy.state = RunState(0, model)
    for node in range(count):
        server.enrolment.roster.enrol(EnrolledClient(f"{node:04}", node, "toy:0", 10))
    server.listen()
    server.intake.spool = Spool(folder, most=4 * 400_000)
    rng, arrived = np.random.default_rng(0), list[Message]()
    tracemalloc.start()
    for node in range(count):
        update = {"w": rng.standard_normal(100_000, np.float32)}
        content = encode(reply_of("ann", update=update, gradient={}))
        arrived += [Message(content, reply_to=instruction(node))]
        server.intake.take(node, arrived[-1])
    server.round(*arrived)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert server.strategy.state.round == 1
    return peak


def test_the_file_has_no_name_and_no_other_reader(tmp_path: Path) -> None:
    """A killed server leaves nothing behind."""
    spool = Spool(tmp_path, most=100)
    small: Arrays = {"a": np.arange(3.0)}
    large: Arrays = {
        "b": np.arange(1000, dtype=np.float32).reshape(10, 100).T,
        "b@rows": np.array([3, 5], np.int32),
        "none": np.zeros((0, 4)),
        "one": np.array(2.5),
    }
    in_memory, on_disk = spool.store(small), [spool.store(large) for _ in range(2)]
    assert in_memory() is small
    assert [sha256(load()) for load in on_disk] == [sha256(large)] * 2
    assert [*on_disk[0]()] == [*large]
    assert list(tmp_path.iterdir()) == []
    assert spool._file is not None
    assert stat.S_IMODE(os.fstat(spool._file.number).st_mode) == 0o600


def test_arrays_stay_in_memory_where_the_file_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(tmp_path / "absent", most=0)
    arrays = {"a": np.arange(3.0)}
    assert [spool.store(arrays)() for _ in range(2)] == [arrays, arrays]
    assert len(caplog.records) == 1
