"""2,000 mutated payloads at the desk of a helper: typed errors only, and no round is opened for two sets."""

import random
from collections import defaultdict
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np

from client.secure.helper.helper_service import HelperService
from common.errors import FedloomError
from common.secure.terms import SumTerms
from common.wire.messages import HelperRequest, OpenReply, OpenRequest, PrepareRequest
from tests.support.desks import LINES, Helpers
from tests.support.helpers import EXACT
from tests.support.mutations import TIMES, mutated


def send(desk: HelperService, request: Any) -> Any:
    """Let a desk answer; only typed errors may leave, and None is returned then."""
    kinds = {HelperRequest: desk.card, PrepareRequest: desk.prepare, OpenRequest: desk.open}
    with suppress(FedloomError):
        return kinds[type(request)](request)


KINDS: tuple[dict[str, Any], ...] = (
    {},
    *({"channel": channel, **EXACT} for channel in ("train", "repeat/1", "repeat/2")),
)
"""Terms with noise, and of a sum and its repeats without."""


def requests(room: Helpers, about: SumTerms) -> list[Any]:
    uploads = room.upload(about, [np.arange(6) - n for n in range(4)])
    names, sealed = [upload.client for upload in uploads], [upload.sealed[0] for upload in uploads]
    text = about.to_json()
    return [
        HelperRequest("toy", "{}"),
        PrepareRequest(text, names, sealed, LINES, [upload.commitment for upload in uploads]),
        OpenRequest(text, names),
    ]


def test_mutated_payloads_are_typed_errors_and_open_one_sum_a_round() -> None:
    chance, room, sums = random.Random(11), Helpers(), defaultdict[tuple[int, str], set[bytes]](set)
    desk = room.desks[0]
    for number in range(1, 1 + 200 * TIMES):
        good = requests(room, room.terms(round=number, **chance.choice(KINDS)))
        for _ in range(10):
            request = chance.choice(good)
            field = chance.choice(fields(request)).name
            reply = send(desk, replace(request, **{field: mutated(chance, getattr(request, field))}))
            if isinstance(reply, OpenReply) and not reply.missing:
                sums[reply.round, reply.channel].add(reply.opened["sum"].tobytes())
            if chance.random() < 0.2:
                send(desk, good[1])
    assert len(sums) > 50
    assert {len(found) for found in sums.values()} == {1}
