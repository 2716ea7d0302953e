"""Masked uploads taken as they arrive: memory that does not grow with their number, and reasons for bad ones."""

import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from common.errors import FedloomError
from common.wire.codec import encode
from common.wire.messages import TrainReply
from server.aggregation.replies import Load
from server.clients.roster import EnrolledClient
from server.round.spool import Spool
from tests.support.mutations import TIMES, mutated
from tests.support.sum_runs import SumFederation, noised
from tests.support.sum_server import SumServer
from tests.support.toys import instruction

SIZE = 50_000

READ = ("round", "steps", "masked", "sealed", "update", "gradient")
"""Fields of a reply that a sum reads."""


def test_memory_does_not_grow_with_uploads(tmp_path: Path) -> None:
    """Of 8 or 80 uploads of 400 kB each, four are in memory; the interpreter may need some MB for itself."""
    peaks = {}
    for count in (8, 80):
        server = SumServer(tmp_path, count, SIZE)
        tracemalloc.start()
        messages = [server.take(node, server.reply(node)) for node in range(count)]
        fixed, _ = server.opening.close(server.split(*messages)[0], {})
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (fixed.total == sum(range(count))).all()
        assert fixed.steps == {f"{node:04}": 1 for node in range(count)}
    assert peaks[8] < 14 * 8 * SIZE
    assert peaks[80] - peaks[8] < 72 / 4 * 8 * SIZE


@pytest.mark.parametrize(
    "spoil",
    [
        lambda reply: replace(reply, masked={"sum": reply.masked["sum"][1:]}),
        lambda reply: replace(reply, masked={"sum": np.zeros(SIZE + 20_000, "<u8")}),
        lambda reply: replace(reply, sealed=reply.sealed[:1]),
        lambda reply: replace(reply, steps=0),
        lambda reply: replace(reply, round=7),
        lambda reply: replace(reply, update={"w": np.zeros(3, np.float32)}),
    ],
)
def test_a_bad_upload_has_the_reason_that_it_has_without_a_spool(
    spoil: Callable[[TrainReply], TrainReply], tmp_path: Path
) -> None:
    server = SumServer(tmp_path, 2, SIZE)
    bad = spoil(server.reply(1))
    uploads, reasons = server.split(server.take(0, server.reply(0)), server.take(1, bad))
    assert [*uploads] == ["0000"]
    server.enrolment.roster.enrol(EnrolledClient("0001", 1, "toy:0", 10))
    assert reasons == server.split(Message(encode(bad), reply_to=instruction(1)))[1]
    assert [*reasons] == ["0001"]


def test_a_run_on_disk_ends_with_the_model_of_a_run_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = noised(rounds=2)
    expected = SumFederation(tmp_path / "memory").run(config)
    loads: list[Load] = []

    def store(spool: Spool, arrays: Any) -> Load:
        loads.append(written(spool, arrays))
        return loads[-1]

    written = Spool.store
    monkeypatch.setattr(Spool, "store", store)
    for module in ("server.secure.store",):
        monkeypatch.setattr(f"{module}.Spool", partial(Spool, most=0))
    assert SumFederation(tmp_path / "disk").run(config).model_sha256 == expected.model_sha256
    assert len(loads) == 2 * 4
    assert all(isinstance(load, partial) for load in loads), "in a file"


def test_mutated_replies_are_named_and_the_others_open(tmp_path: Path) -> None:
    """Each of 4,000 replies of clients, times `TIMES`, has one changed field."""
    chance, server, kept = random.Random(5), SumServer(tmp_path, 3, 6), 0
    good, others = server.reply(1), [server.take(node, server.reply(1)) for node in (0, 1)]
    for _ in range(4_000 * TIMES):
        field = chance.choice(READ)
        bad = replace(good, **{field: mutated(chance, getattr(good, field))})
        server.listen(Spool(tmp_path))
        uploads, reasons = server.split(*others, server.take(2, bad))
        assert {*uploads} - {"0002"} == {"0000", "0001"}
        assert {*uploads, *reasons} == {"0000", "0001", "0002"}
        kept += "0002" in uploads
        server.enrolment.roster.enrol(EnrolledClient("0002", 2, "toy:0", 10))
    assert 0 < kept < 2_000 * TIMES, "other characters of a box and an empty update are possible"
    assert server.opening.close(uploads, {})[0].total.shape == (6,)


def test_mutated_answers_of_helpers_lose_the_sum_or_leave_it(tmp_path: Path) -> None:
    """Each of 2,000 answers, of two helpers to two questions, has one changed field."""
    chance, server, ends = random.Random(6), SumServer(tmp_path, 2, 6), list[bool]()

    def change(reply: Any) -> Any:
        field = chance.choice(fields(reply)).name
        return replace(reply, **{field: mutated(chance, getattr(reply, field))})

    uploads = server.split(*(server.take(node, server.reply(node)) for node in range(2)))[0]
    server.change = change
    for _ in range(500):
        with suppress(FedloomError):
            fixed, rejected = server.opening.close(uploads, {})
            ends.append(server.opening.open(fixed).shape == (6,))
            assert rejected == {}
        server._store.clear(1, "train")
    assert all(ends)
