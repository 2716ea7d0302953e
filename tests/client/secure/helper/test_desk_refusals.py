"""Hostile requests at the desk of a helper: replayed boxes, malformed sets; nothing is noted."""

import numpy as np
import pytest

from client.secure.helper.helper_service import HelperService
from common.arrays import Ints
from common.errors import FedloomError, RefusedError, WireError
from common.secure.terms import SumTerms
from common.wire.messages import HelperRequest, OpenRequest, PrepareRequest
from tests.support.desks import LINES, Helpers, Upload, open_sum, prepare
from tests.support.helpers import members


def vectors(number: int) -> list[Ints]:
    return [np.arange(6) - n for n in range(number)]


def changed_box(room: Helpers, about: SumTerms, **changed: object) -> str:
    """Return a box of client-001 for helper-0, sealed for another place."""
    other = room.terms(**changed)
    return Upload("client-001", vectors(1)[0], other, room.roster).sealed[0]


@pytest.mark.parametrize(
    "changed",
    [{"round": 2}, {"channel": "evaluate"}, {"run": "other"}, {"noise": 1}, {"roster": "1" * 64}, {"most": 9}],
)
def test_a_box_of_another_place_is_bad_and_opens_nowhere(changed: dict[str, object]) -> None:
    room = Helpers()
    about = room.terms()
    uploads = room.upload(about, vectors(3))
    uploads[1].sealed[0] = changed_box(room, about, **changed)
    assert prepare(room.desks[0], about, uploads).bad == ["client-001"]
    with pytest.raises(RefusedError, match="not prepared"):
        open_sum(room.desks[0], about, uploads)
    assert not open_sum(room.desks[0], about, [uploads[0], uploads[2]]).missing


def test_a_box_of_another_client_or_helper_is_bad() -> None:
    room = Helpers()
    about = room.terms()
    uploads = room.upload(about, vectors(3))
    uploads[1].sealed[0] = uploads[0].sealed[0]
    uploads[2].sealed[0] = uploads[2].sealed[1]
    assert prepare(room.desks[0], about, uploads).bad == ["client-001", "client-002"]


@pytest.mark.parametrize("box", ["", "é", "AAAA", "A" * 108, "A" * 107 + "\n", "=" * 108])
def test_a_malformed_box_is_bad(box: str) -> None:
    room = Helpers()
    about = room.terms()
    uploads = room.upload(about, vectors(3))
    uploads[0].sealed[0] = box
    assert prepare(room.desks[0], about, uploads).bad == ["client-000"]


def refused(room: Helpers, change: str) -> None:
    """Send one bad request to the first helper."""
    about = room.terms(min_sum=3)
    uploads = room.upload(about, vectors(4))
    names, sealed = [upload.client for upload in uploads], [upload.sealed[0] for upload in uploads]
    text, desk, bound = about.to_json(), room.desks[0], [upload.commitment for upload in uploads]
    prepare(desk, about, uploads)
    match change:
        case "too few":
            desk.open(OpenRequest(text, names[:2]))
        case "too many":
            desk.prepare(PrepareRequest(room.terms(most=3, min_sum=3).to_json(), names, sealed, LINES, bound))
        case "not prepared":
            desk.open(OpenRequest(text, [*names, "zoe"]))
        case "twice":
            desk.open(OpenRequest(text, [names[0], names[0], names[1]]))
        case "unsorted":
            desk.prepare(PrepareRequest(text, names[::-1], sealed[::-1], LINES, bound))
        case "empty name":
            desk.prepare(PrepareRequest(text, ["", *names[1:]], sealed, LINES, bound))
        case "no clients":
            desk.open(OpenRequest(text, []))
        case "a box short":
            desk.prepare(PrepareRequest(text, names, sealed[1:], LINES, bound))
        case "helper as client":
            desk.prepare(PrepareRequest(text, [*names, "helper-0"], [*sealed, sealed[0]], LINES, [*bound, bound[0]]))
        case "other run":
            desk.prepare(PrepareRequest(room.terms(run="other").to_json(), names, sealed, LINES, bound))
        case "other terms":
            desk.open(OpenRequest(room.terms(min_sum=2).to_json(), names))
        case "terms":
            desk.open(OpenRequest("{}", names))
        case "large":
            HelperService("helper-0", desk._node_key, most_numbers=5).prepare(
                PrepareRequest(text, names, sealed, LINES, bound)
            )
        case "run without a name":
            desk.card(HelperRequest("", "{}"))


@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        ("too few", RefusedError, "clients of 2 owners in the sum; its terms require 3"),
        ("too many", WireError, "its terms allow 3"),
        ("not prepared", RefusedError, "not prepared"),
        ("twice", WireError, "repeated"),
        ("unsorted", WireError, "ascending"),
        ("empty name", WireError, "empty"),
        ("no clients", WireError, "0 clients"),
        ("a box short", WireError, "3 boxes and 4 commitments of 4 clients"),
        ("helper as client", WireError, "name of the helper"),
        ("other run", RefusedError, "round 1 of run 'other' is of a key that this helper does not have"),
        ("other terms", RefusedError, "prepared on other terms"),
        ("terms", WireError, "terms"),
        ("large", RefusedError, "6 numbers"),
        ("run without a name", WireError, "invalid name"),
    ],
)
def test_a_bad_request_is_refused_and_nothing_is_noted(change: str, kind: type[FedloomError], reason: str) -> None:
    room = Helpers()
    with pytest.raises(kind, match=reason):
        refused(room, change)
    assert room.desks[0].state.find_keys(room.terms()).sums == {}


OWNED = ("a@ann", "b@ann", "c@bob")


def test_an_owner_of_several_clients_counts_once_for_a_helper() -> None:
    room = Helpers()
    shown = members(*OWNED)
    about = room.terms(min_sum=3, members=shown.digest)
    uploads = [Upload(name, vector, about, room.roster) for name, vector in zip(OWNED, vectors(3), strict=True)]
    lines = [one.line for one in shown.members]
    boxes, bound = [one.sealed[0] for one in uploads], [one.commitment for one in uploads]
    assert room.desks[0].prepare(PrepareRequest(about.to_json(), [*OWNED], boxes, lines, bound)).bad == []
    with pytest.raises(RefusedError, match="clients of 2 owners in the sum; its terms require 3"):
        open_sum(room.desks[0], about, uploads)
