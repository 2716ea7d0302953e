import math
from itertools import islice
from random import Random

import pytest

from client.node.resident import Polling, retry_pauses


def test_waits_grow_from_first_to_cap() -> None:
    polling = Polling(first=0.01, growth=2.0, cap=1.0, courtesy=0.0, jitter=0.0)
    assert [polling.wait_after_nothing(n, 0.0, Random(0)) for n in (1, 2, 3, 8, 5000)] == [0.01, 0.02, 0.04, 1.0, 1.0]


def test_a_slow_server_is_polled_less() -> None:
    polling = Polling(first=0.01, courtesy=3.0, jitter=0.0)
    assert polling.wait_after_nothing(1, took=0.2, random=Random(0)) == pytest.approx(0.6)


def test_jitter_spreads_clients_within_its_bounds() -> None:
    polling, random = Polling(first=1.0, jitter=0.2), Random(7)
    waits = [polling.wait_after_nothing(1, 0.0, random) for _ in range(1000)]
    assert 0.8 <= min(waits) < 0.82
    assert 1.18 < max(waits) <= 1.2


def test_64_long_idle_clients_poll_less_than_45_times_a_second() -> None:
    polling, random = Polling(), Random(1)
    assert sum(1 / polling.wait_after_nothing(100, 0.005, random) for _ in range(64)) < 45


@pytest.mark.parametrize(
    ("asked", "cap"),
    [(0.0, 1.0), (-3.0, 1.0), (math.nan, 1.0), (0.5, 2.0), (7.0, 7.0), (900.0, 30.0), (math.inf, 30.0)],
)
def test_a_server_sets_the_longest_wait_within_bounds(asked: float, cap: float) -> None:
    assert Polling(cap=1.0, jitter=0.0).capped(asked).wait_after_nothing(5000, 0.0, Random(0)) == cap


def test_a_message_is_detected_soon_after_a_short_pause() -> None:
    """After a pause of one second the waits have grown to about (growth - 1) of it."""
    polling, passed, empty = Polling(jitter=0.0), 0.0, 0
    while passed < 1.0:
        empty += 1
        wait = polling.wait_after_nothing(empty, 0.002, Random(0))
        passed += wait
    assert wait < 0.3


def test_after_a_reply_a_client_waits_for_most_of_the_usual_pause() -> None:
    polling = Polling(head_start=0.6, cap=2.0, jitter=0.0)
    assert [polling.wait_after_reply(rhythm, Random(0)) for rhythm in (0.0, 0.5, 100.0)] == [0.0, 0.3, 2.0]


def test_shorter_pauses_are_followed() -> None:
    """A client that was used to 2 s and is now asked every 0.1 s notices at first late, then on time."""
    polling, rhythm = Polling(jitter=0.0), 2.0
    for _ in range(8):
        rhythm = max(0.1, polling.wait_after_reply(rhythm, Random(0)))
    assert rhythm == pytest.approx(0.1)


def test_a_server_that_was_gone_for_a_time_is_reached_again_within_a_tenth_of_it() -> None:
    passed, waits = 0.0, list(islice(retry_pauses(Random(3)), 1000))
    for wait in waits:
        assert 0.08 <= wait <= 0.15 + 0.1 * passed
        passed += wait
    assert 2.8 < max(waits) <= 3.0, "a server that is gone for long is rarely asked"
