"""Time in which a round that lost its clients is asked again, and the pauses in it."""

from server.run import FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, Patience


def test_patience_begins_with_the_first_failure_of_a_round() -> None:
    now = [0.0]
    patience = Patience(10.0, lambda: now[0])
    assert patience.allows(1)
    now[0] = 9.0
    assert patience.allows(1)
    assert patience.allows(2), "another round, another time"
    now[0] = 18.0
    assert patience.allows(2)
    now[0] = 20.0
    assert not patience.allows(2)


def test_pauses_grow_and_begin_anew_with_another_round() -> None:
    pauses = list[float]()
    patience = Patience(100.0, lambda: 0.0, pauses.append)
    for number in [1] * 20 + [2]:
        assert patience.allows(number)
        patience.wait()
    assert pauses[0] == pauses[-1] == FIRST_PAUSE_SECONDS
    assert pauses[:20] == sorted(pauses[:20])
    assert pauses[19] == MAX_PAUSE_SECONDS
