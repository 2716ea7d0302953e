"""Keys of a helper: in memory alone, one for each run and start, deleted when a run is over or forgotten."""

from pathlib import Path

import numpy as np
import pytest

from client.secure.helper import helper_service
from client.secure.helper.helper_service import DAY, HelperService, HelperState
from common.errors import RefusedError
from common.secure.cards import NodeCard
from common.secure.terms import SumTerms
from common.wire.messages import HelperRequest
from tests.support.desks import Helpers, Upload, open_sum, prepare


class Clock:
    """Clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def card_of(desk: HelperService, run: str = "toy") -> NodeCard:
    return NodeCard.from_json(desk.card(HelperRequest(run, "{}")).card)


def prepared(room: Helpers) -> tuple[SumTerms, list[Upload]]:
    """Return terms and uploads of three clients, which all helpers have opened."""
    about = room.terms()
    uploads = room.upload(about, [np.arange(6) - n for n in range(3)])
    room.prepare(about, uploads)
    return about, uploads


def filled(clock: Clock) -> HelperState:
    """Return a state with keys of run `toy`."""
    state, desk = HelperState(clock), Helpers().desks[0]
    state.keys("toy", lambda: desk._make_keys("toy"))
    return state


def test_each_start_and_each_run_has_another_key_of_the_same_identity() -> None:
    room = Helpers()
    before = room.roster.cards[0]
    assert card_of(room.desks[0]) == before
    other = card_of(room.desks[0], "other")
    room.restart()
    after = card_of(room.desks[0])
    assert len({before.key, other.key, after.key}) == 3
    assert {before.fingerprint, other.fingerprint} == {after.fingerprint}


def test_nothing_of_an_earlier_start_opens_and_no_client_is_blamed() -> None:
    room = Helpers()
    about, uploads = prepared(room)
    room.restart()
    for desk in room.desks:
        card_of(desk)
        with pytest.raises(
            RefusedError, match="round 1 of run 'toy' is of a key that this helper does not have: it started again"
        ):
            prepare(desk, about, uploads)
        with pytest.raises(RefusedError, match="started again"):
            open_sum(desk, about, uploads)


def test_a_helper_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    room = Helpers()
    about, uploads = prepared(room)
    open_sum(room.desks[0], about, uploads)
    assert not list(tmp_path.iterdir())


def test_runs_without_messages_are_forgotten() -> None:
    clock, about = Clock(), Helpers().terms()
    state = filled(clock)
    clock.now += 20 * DAY
    with pytest.raises(RefusedError, match="started again"):  # a message of another start counts, too
        state.find_keys(about)
    clock.now += 29 * DAY
    assert state.forget(30) == []
    clock.now += 2 * DAY
    assert state.forget(30) == ["toy"]
    with pytest.raises(
        RefusedError, match="run 'toy' is of a key that this helper does not have: it started again, or the run is over"
    ):
        state.find_keys(about)


def test_keys_of_a_limited_number_of_runs_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_service, "MOST_KEYS", 2)
    desk = Helpers().desks[0]
    first, second = card_of(desk), card_of(desk, "second")
    assert card_of(desk) == first  # the run with the newest message stays
    card_of(desk, "third")
    assert card_of(desk) == first
    assert card_of(desk, "second") != second
