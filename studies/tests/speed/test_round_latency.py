"""Timings of rounds with a ClientApp that does nothing."""

from pathlib import Path

from studies.harness.noop_federation import Timing, count_calls
from studies.speed.round_latency import is_late, slopes


def timed(clients: int, seconds: float, channel: str = "memory", client: str = "resident") -> Timing:
    return Timing(client, clients, channel, [seconds] * 3, (100, 100))


def test_the_cost_of_a_client_is_the_slope_over_their_number() -> None:
    assert slopes([timed(2, 0.2), timed(4, 0.3), timed(6, 0.4), timed(2, 1.0, "full")]) == {"resident, memory": 0.05}


def test_calls_are_those_of_a_client_in_a_round(tmp_path: Path) -> None:
    """The first reply and what came before it do not count."""
    (tmp_path / "a").write_text(
        '{"Pull": 90}\n{"Pull": 97, "Push": 3}\n{"Pull": 99, "Push": 6}\n{"Pull": 101, "Push": 9}\n'
    )
    (tmp_path / "b").write_text('{"Pull": 10, "Push": 3}\n{"Pull": 14, "Push": 6}\n{"Pull": 18, "Push": 9}\n')
    assert count_calls(tmp_path.glob("?"), rounds=2) == {"Pull": 3.0, "Push": 3.0}


def test_limits_hold_for_resident_clients_with_the_state_in_memory() -> None:
    assert is_late(timed(32, 1.7))
    assert not is_late(timed(32, 1.6))
    assert not is_late(timed(33, 9.0))
    assert not is_late(timed(32, 1.7, "full"))
    assert not is_late(timed(32, 1.7, client="stock"))
