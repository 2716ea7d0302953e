"""Masked uploads taken as they arrive: memory that does not grow with their number, and reasons for bad ones."""

import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from flwr.app import Message

from common.secure.masking import BOX
from common.wire.codec import encode
from common.wire.messages import TrainReply
from common.wire.sums import PrepareReply
from server.aggregation.round_results import Load
from server.exchange import content_size
from server.roster import EnrolledClient
from server.secure.helper_exchange import HelperExchange
from server.secure.helper_sums import HelperSums
from server.secure.open_sum import Opening
from server.secure.store import SumStore
from server.spool import Spool
from tests.support.helpers import EXACT, roster, terms
from tests.support.strategies import Server
from tests.support.sum_runs import SumFederation, noised
from tests.support.toys import instruction

SIZE = 50_000
BOXES = ["A" * ((BOX + 2) // 3 * 4)] * 2
ABOUT = terms(size=SIZE, layout=(("update", SIZE),), roster=roster().digest, most=128, **EXACT)


class Prepared:
    """Helpers that open every box."""

    def ask(self, requests: Mapping[str, Any], kind: str, reply: type[PrepareReply]) -> dict[str, PrepareReply]:
        return {name: PrepareReply(1, "train", []) for name in requests}


def upload(number: int, **changes: Any) -> TrainReply:
    masked = {"sum": np.full(SIZE, number, "<u8")}
    return replace(TrainReply(1, {}, {}, 0.0, 1, 1, masked=masked, sealed=BOXES), **changes)


def summing(folder: Path, count: int) -> tuple[Server, Opening]:
    """Return a server of so many clients in a round of a sum, with four uploads in memory, and the sum's opening."""
    server, exchange, store = Server("fedavg"), cast(HelperExchange, Prepared()), SumStore(folder / "secure", "toy")
    for node in range(count):
        server.enrolment.roster.enrol(EnrolledClient(f"{node:04}", node, "toy:0", 10))
    server.strategy._sums = HelperSums(server.config, roster(), exchange, store)
    server.strategy._terms = ABOUT
    server.strategy.open_intake()
    server.strategy._spool = Spool(folder, most=4 * 8 * SIZE)
    return server, Opening(ABOUT, roster(), exchange, store)


def take(server: Server, node: int, reply: TrainReply) -> Message:
    message = Message(encode(reply), reply_to=instruction(node))
    before = content_size(message.content)
    server.strategy.take(node, message)
    assert content_size(message.content) == before
    return message


def split(server: Server, messages: list[Message]) -> tuple[dict[str, Any], dict[str, str]]:
    assert server.strategy._sums is not None
    return server.strategy._split_uploads(server.strategy._sums, ABOUT, messages)


def test_memory_does_not_grow_with_uploads(tmp_path: Path) -> None:
    """Of 8 or 80 uploads of 400 kB each, four are in memory; the sum needs few more."""
    peaks = {}
    for count in (8, 80):
        server, opening = summing(tmp_path, count)
        tracemalloc.start()
        messages = [take(server, node, upload(node)) for node in range(count)]
        fixed, _ = opening.close(split(server, messages)[0], {})
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (fixed.total == sum(range(count))).all()
        assert fixed.steps == {f"{node:04}": 1 for node in range(count)}
    assert peaks[80] < 1.1 * peaks[8] < 14 * 8 * SIZE


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
    server, _ = summing(tmp_path, 2)
    bad = spoil(upload(1))
    later = Message(encode(bad), reply_to=instruction(1))
    uploads, reasons = split(server, [take(server, 0, upload(0)), take(server, 1, bad)])
    assert [*uploads] == ["0000"]
    server.enrolment.roster.enrol(EnrolledClient("0001", 1, "toy:0", 10))
    assert (*reasons, *reasons.values()) == ("0001", split(server, [later])[1]["0001"])


def test_a_run_on_disk_ends_with_the_model_of_a_run_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = SumFederation(tmp_path / "memory").run(noised())
    loads: list[Load] = []

    def store(spool: Spool, arrays: Any) -> Load:
        loads.append(written(spool, arrays))
        return loads[-1]

    written = Spool.store
    monkeypatch.setattr(Spool, "store", store)
    monkeypatch.setattr("server.strategies.intake.Spool", partial(Spool, most=0))
    assert SumFederation(tmp_path / "disk").run(noised()).model_sha256 == expected.model_sha256
    assert len(loads) == 3 * 4
    assert all(isinstance(load, partial) for load in loads), "in a file"
