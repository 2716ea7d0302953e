"""Time in which a round that lost its clients is asked again."""

from server.training import Patience


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
