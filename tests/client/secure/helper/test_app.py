"""Flower app of a helper and its observer: messages in, messages out; keys of forgotten runs are deleted."""

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict

from client.secure.helper.app import HELPER_TYPES, HelperObserver, make_app
from client.secure.helper.helper_service import DAY, HOUR
from common.secure.cards import NodeCard
from common.secure.norms import share_size
from common.wire.codec import decode, encode
from common.wire.messages import (
    ENROL,
    EVALUATE,
    FAILED,
    HELPER,
    NAMES,
    OPEN,
    PREPARE,
    REFUSED,
    TRAIN,
    HelperReply,
    HelperRequest,
    OpenReply,
    OpenRequest,
    Payload,
    PrepareReply,
    PrepareRequest,
)
from tests.client.secure.helper.test_keys import Clock, filled
from tests.support.desks import LINES, Helpers
from tests.support.toys import instruction

ROOT = Path(__file__).parents[4]
MEGABYTE = 1_000_000

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from client.secure.helper.app import make_app
from client.node.resident import run_resident
from tests.support.desks import LINES, Helpers, open_sum, prepare
size = int(sys.argv[1])
room = Helpers(2)
make_app(room.desks[0])
about = room.terms(size=size, layout=(("update", size),))
uploads = room.upload(about, [np.zeros(size, np.int64)] * 2)
prepare(room.desks[0], about, uploads)
open_sum(room.desks[0], about, uploads)
heavy = {"torch", "scipy", "sklearn", "pyarrow", "pandas", "pydantic_settings", "opacus"} & {*sys.modules}
[peak] = [row.split()[1] for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM")]
print(sorted(heavy), peak)
"""


def asked(room: Helpers, kind: str, payload: Payload | None = None) -> Message:
    content = encode(payload) if payload else RecordDict()
    return make_app(room.desks[0])(instruction(1, content, kind), Context(1, 1, {}, RecordDict(), {}))


def test_a_helper_answers_its_three_messages() -> None:
    room = Helpers()
    about = room.terms()
    uploads = room.upload(about, [np.arange(6), np.ones(6, np.int64)])
    names, sealed = [upload.client for upload in uploads], [upload.sealed[0] for upload in uploads]
    card = decode(HelperReply, asked(room, HELPER, HelperRequest("toy", "{}")).content)
    assert NodeCard.from_json(card.card) == room.roster.cards[0]
    prepared = asked(
        room, PREPARE, PrepareRequest(about.to_json(), names, sealed, LINES, [u.commitment for u in uploads])
    )
    reply = decode(PrepareReply, prepared.content)
    assert (reply.round, reply.channel, reply.bad) == (1, "train", [])
    assert reply.shares["shares"].shape == (2, share_size(6))
    opened = decode(OpenReply, asked(room, OPEN, OpenRequest(about.to_json(), names)).content)
    assert (opened.round, opened.channel, opened.missing) == (1, "train", False)
    assert (opened.opened["sum"].dtype, opened.opened["sum"].shape) == (np.uint64, (6,))


@pytest.mark.parametrize("kind", [ENROL, NAMES, TRAIN, EVALUATE])
def test_a_helper_refuses_the_messages_of_clients(kind: str) -> None:
    reply = asked(Helpers(), kind)
    assert (reply.error.code, reply.error.reason) == (REFUSED, "this node is a helper without data")


@pytest.mark.parametrize("kind", HELPER_TYPES)
def test_a_malformed_message_is_an_error_answer(kind: str) -> None:
    assert asked(Helpers(), kind).error.code == FAILED


def test_a_helper_is_light_and_imports_no_torch() -> None:
    """Open a sum of 100,000 numbers in a fresh interpreter, within the 120 MB of the specification."""
    command = [sys.executable, "-c", PROGRAM, "100000"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    heavy, _, kilobytes = done.stdout.strip().rpartition(" ")
    assert heavy == "[]"
    assert int(kilobytes) * 1024 < 120 * MEGABYTE


def test_keys_of_a_run_without_messages_are_deleted_within_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fedloom.node")
    clock = Clock()
    state = filled(clock)
    observer = HelperObserver("localhost:9092", "ann", state, 2, clock)
    observer.idle()
    clock.now += 2 * DAY - HOUR + 1
    observer.idle()
    state.keys("toy", pytest.fail)
    clock.now += 2 * DAY - HOUR
    observer.idle()
    assert caplog.messages == []
    clock.now += HOUR + 1
    observer.idle()
    assert caplog.messages == ["run 'toy': keys deleted after 2 days without a message"]
    assert state.forget(0) == []
