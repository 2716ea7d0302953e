"""2,000 mutated payloads at the desk of a helper: typed errors only, and no round is opened for two sets."""

import logging
import random
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from client.secure.helper.helper_service import HelperService
from common.errors import FedloomError
from common.secure.terms import SumTerms
from common.wire.messages import HelperRequest, OpenRequest, PrepareRequest
from tests.support.desks import LINES, Helpers
from tests.support.mutations import mutated


def send(desk: HelperService, request: Any) -> None:
    """Let a desk answer; only typed errors may leave."""
    kinds = {HelperRequest: desk.card, PrepareRequest: desk.prepare, OpenRequest: desk.open}
    with suppress(FedloomError):
        kinds[type(request)](request)


def requests(room: Helpers, about: SumTerms) -> list[Any]:
    uploads = room.upload(about, [np.arange(6) - n for n in range(4)])
    names, sealed = [upload.client for upload in uploads], [upload.sealed[0] for upload in uploads]
    text = about.to_json()
    return [
        HelperRequest("toy", "{}"),
        PrepareRequest(text, names, sealed, LINES, [upload.commitment for upload in uploads]),
        OpenRequest(text, names),
    ]


def test_mutated_payloads_are_typed_errors_and_open_one_sum_a_round(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fedloom.helper.sums")
    chance, room = random.Random(11), Helpers()
    desk = room.desks[0]
    for number in range(1, 201):
        good = requests(room, room.terms(round=number))
        for _ in range(10):
            request = chance.choice(good)
            field = chance.choice(fields(request)).name
            send(desk, replace(request, **{field: mutated(chance, getattr(request, field))}))
            if chance.random() < 0.2:
                send(desk, good[1])
    places = [" · ".join(record.getMessage().split(" · ")[:3]) for record in caplog.records]
    assert len(places) == len({*places}) > 50
