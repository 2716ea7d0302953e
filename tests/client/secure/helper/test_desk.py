"""Desk of a helper: exact sums for every subset, one sum for each round and channel, refusals."""

import logging
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from client.secure.helper import helper_service as seeds
from client.secure.helper.helper_service import HelperService
from common.errors import RefusedError
from common.secure.noise import Stream, discrete_gaussian
from common.secure.terms import SumTerms
from common.wire.messages import HelperRequest
from tests.support.desks import Helpers, open_sum, prepare, total
from tests.support.helpers import EXACT, terms

GENERATOR = np.random.default_rng(5)


def vectors(number: int, size: int = 6) -> list[np.ndarray[Any, Any]]:
    return [GENERATOR.integers(-400, 400, size) for _ in range(number)]


def noise_of(desk: HelperService, about: SumTerms) -> np.ndarray[Any, Any]:
    """Return the noise that a desk has drawn for a sum."""
    key = desk.state.find_keys(about).sums[about.channel][-1]
    return discrete_gaussian(about.noise, about.size, Stream(key))


@pytest.mark.parametrize("helpers", [2, 3, 5])
@pytest.mark.parametrize("clients", [2, 8, 64])
def test_the_sum_is_exactly_that_of_the_vectors_and_the_noise(helpers: int, clients: int) -> None:
    room = Helpers(helpers)
    about = room.terms()
    uploads = room.upload(about, vectors(clients))
    assert [reply.bad for reply in room.prepare(about, uploads)] == [[]] * helpers
    kept = uploads[:: 2 if clients > 2 else 1]
    replies = [open_sum(desk, about, kept) for desk in room.desks]
    expected = sum(upload.vector for upload in kept) + sum(noise_of(desk, about) for desk in room.desks)
    np.testing.assert_array_equal(total(kept, replies), expected)


def test_every_set_of_two_or_more_clients_without_noise_is_their_exact_sum() -> None:
    room = Helpers(2)
    sets = [chosen for n in (2, 3, 4) for chosen in combinations(range(4), n)]
    for number, chosen in enumerate(sets, start=1):
        about = room.terms(**EXACT, round=number)
        uploads = room.upload(about, vectors(4))
        room.prepare(about, uploads)
        kept = [uploads[n] for n in chosen]
        replies = [open_sum(desk, about, kept) for desk in reversed(room.desks)]
        np.testing.assert_array_equal(total(kept, replies), sum(upload.vector for upload in kept))


class Opened:
    """Two helpers that have opened round 1 of five clients for the first three."""

    def __init__(self) -> None:
        self.room = Helpers(2)
        self.about = self.room.terms()
        self.uploads = self.room.upload(self.about, vectors(5))
        self.room.prepare(self.about, self.uploads)
        self.first = [self.open(desk, 3) for desk in self.room.desks]

    def open(self, desk: HelperService, clients: int) -> bytes:
        return bytes(open_sum(desk, self.about, self.uploads[:clients]).opened["sum"].tobytes())


def test_the_same_set_has_the_same_answer() -> None:
    opened = Opened()
    assert [opened.open(desk, 3) for desk in opened.room.desks] == opened.first


def test_a_second_set_of_a_round_is_refused_by_every_helper() -> None:
    opened = Opened()
    for desk in opened.room.desks:
        for clients in (2, 4, 5):
            with pytest.raises(RefusedError, match="the sum of round 1 was opened for another set"):
                opened.open(desk, clients)


def test_the_same_names_with_other_boxes_are_another_set() -> None:
    opened = Opened()
    again = opened.room.upload(opened.about, vectors(5))  # seeds are equal, boxes are sealed anew
    prepare(opened.room.desks[0], opened.about, again)
    with pytest.raises(RefusedError, match="another set"):
        open_sum(opened.room.desks[0], opened.about, again[:3])


def test_other_terms_of_an_opened_round_are_another_set() -> None:
    opened = Opened()
    about = opened.room.terms(noise=1)
    uploads = opened.room.upload(about, vectors(3))
    assert prepare(opened.room.desks[0], about, uploads).bad == []
    with pytest.raises(RefusedError, match="another set"):
        open_sum(opened.room.desks[0], about, uploads)


def test_an_earlier_round_is_closed_when_a_later_one_was_opened() -> None:
    opened = Opened()
    room = opened.room
    for number in (3, 2):
        about = room.terms(round=number)
        uploads = room.upload(about, vectors(3))
        room.prepare(about, uploads)
        if number == 3:
            open_sum(room.desks[0], about, uploads)
            continue
        with pytest.raises(RefusedError, match="the sum of round 2 is closed"):
            open_sum(room.desks[0], about, uploads)
    room.prepare(opened.about, opened.uploads)
    with pytest.raises(RefusedError, match="the sum of round 1 is closed"):
        opened.open(room.desks[0], 3)


def test_a_repeat_is_of_the_clients_of_an_opened_sum_alone_and_closes_earlier_attempts() -> None:
    room = Helpers(2)
    first, second, third = (room.terms(**EXACT, channel=channel) for channel in ("train", "repeat/1", "repeat/2"))
    sums = {about: room.upload(about, vectors(4)) for about in (first, second, third)}
    for about, uploads in sums.items():
        room.prepare(about, uploads)
    desk, fresh = room.desks
    open_sum(desk, first, sums[first][:3])
    for chosen in (sums[second], sums[second][1:], sums[second][:2]):
        with pytest.raises(RefusedError, match="the sum of round 1 was opened for another set"):
            open_sum(desk, second, chosen)
    replies = [open_sum(each, second, sums[second][:3]) for each in (desk, fresh)]
    np.testing.assert_array_equal(total(sums[second][:3], replies), sum(one.vector for one in sums[second][:3]))
    for each in (desk, fresh):
        with pytest.raises(RefusedError, match="the sum of round 1 is closed"):
            open_sum(each, first, sums[first][:3])
        with pytest.raises(RefusedError, match="another set"):
            open_sum(each, third, sums[third])


def test_channels_of_a_round_are_sums_of_their_own() -> None:
    opened = Opened()
    about = opened.room.terms(channel="evaluate")
    uploads = opened.room.upload(about, vectors(2))
    opened.room.prepare(about, uploads)
    assert not open_sum(opened.room.desks[0], about, uploads).missing
    assert opened.open(opened.room.desks[0], 3) == opened.first[0]


def test_a_run_has_one_card_and_none_after_its_end() -> None:
    opened = Opened()
    desk = opened.room.desks[0]
    assert desk.card(HelperRequest("toy", "{}")).card == opened.room.roster.cards[0].to_json()
    assert desk.card(HelperRequest("toy", "{}", over=True)).card == ""
    for ask in (lambda: prepare(desk, opened.about, opened.uploads), lambda: opened.open(desk, 3)):
        with pytest.raises(
            RefusedError,
            match="run 'toy' is of a key that this helper does not have: it started again, or the run is over",
        ):
            ask()
    assert desk.card(HelperRequest("toy", "{}")).card != opened.room.roster.cards[0].to_json()


def test_two_rounds_of_a_run_are_in_memory_and_sixteen_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Helpers()
    desk = room.desks[0]
    sums = []
    for number in (1, 2, 3):
        about = room.terms(round=number)
        sums.append((about, room.upload(about, vectors(2))))
        prepare(desk, *sums[-1])
    assert [open_sum(desk, *one).missing for one in sums] == [True, False, False]
    monkeypatch.setattr(seeds, "MOST_RUNS", 1)
    others = [one.card(HelperRequest("other", "{}")).card for one in room.desks]
    prepare(desk, room.terms(run="other", keys=tuple(others)), sums[0][1])
    assert open_sum(desk, *sums[2]).missing


def test_the_log_has_one_line_a_sum(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fedloom")
    Opened()
    assert [record.getMessage() for record in caplog.records] == ["toy · round 1 · train · 3 clients · noise 4096"] * 2


def test_terms_of_the_tests_are_valid() -> None:
    assert terms().has_noise
    assert not terms(**EXACT).has_noise
