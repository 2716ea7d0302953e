"""Timings of rounds with a ClientApp that does nothing."""

from studies.harness.noop_federation import Timing
from studies.speed.round_latency import is_late, slopes


def timed(clients: int, seconds: float, channel: str = "memory", client: str = "resident") -> Timing:
    return Timing(client, clients, channel, [seconds] * 3, (100, 100))


def test_the_cost_of_a_client_is_the_slope_over_their_number() -> None:
    assert slopes([timed(2, 0.2), timed(4, 0.3), timed(6, 0.4), timed(2, 1.0, "full")]) == {"resident, memory": 0.05}


def test_limits_hold_for_resident_clients_with_the_state_in_memory() -> None:
    assert is_late(timed(64, 0.3))
    assert not is_late(timed(64, 0.2))
    assert not is_late(timed(33, 9.0))
    assert not is_late(timed(64, 0.3, "full"))
