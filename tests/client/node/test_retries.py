from itertools import islice
from random import Random

from client.node.resident import retry_pauses


def test_a_server_that_was_gone_for_a_time_is_reached_again_within_a_tenth_of_it() -> None:
    passed, waits = 0.0, list(islice(retry_pauses(Random(3)), 1000))
    for wait in waits:
        assert 0.08 <= wait <= 0.15 + 0.1 * passed
        passed += wait
    assert 2.8 < max(waits) <= 3.0, "a server that is gone for long is rarely asked"
