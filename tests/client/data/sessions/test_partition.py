"""Visitors dealt to clients."""

import pytest

from client.data.sessions.generator import demo_visitors
from client.data.sessions.partition import partition
from client.data.sessions.visitors import Visitor
from common.errors import DataError

VISITORS = demo_visitors(0, 50, seed=0)


def names(visitors: tuple[Visitor, ...]) -> list[str]:
    return [visitor.name for visitor in visitors]


def test_every_visitor_goes_to_one_part_and_parts_are_even() -> None:
    parts = partition(VISITORS, 4, seed=0)
    assert sorted(len(part) for part in parts) == [12, 12, 13, 13]
    assert sorted(name for part in parts for name in names(part)) == names(VISITORS)


def test_a_partition_depends_on_names_and_seed_only() -> None:
    again = partition(VISITORS[::-1], 4, seed=0)
    assert [names(part) for part in again] == [names(part) for part in partition(VISITORS, 4, seed=0)]
    assert [names(part) for part in again] != [names(part) for part in partition(VISITORS, 4, seed=1)]


@pytest.mark.parametrize("parts", [0, 51])
def test_more_clients_than_visitors_are_refused(parts: int) -> None:
    with pytest.raises(DataError, match="cannot share 50 visitors among"):
        partition(VISITORS, parts, seed=0)
