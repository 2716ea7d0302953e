"""People dealt to clients."""

from dataclasses import dataclass

import pytest

from client.data.dataset import own_rng
from client.data.read import partition_units
from common.errors import DataError


@dataclass(frozen=True)
class Named:
    name: str


NAMES = [f"user-{k:02}" for k in range(50)]


def deal(names: list[str], parts: int, seed: int = 0) -> list[tuple[str, ...]]:
    parted = partition_units([Named(name) for name in names], parts, seed, "homes")
    return [tuple(unit.name for unit in units) for units in parted]


def test_everybody_goes_to_one_part_and_parts_are_even() -> None:
    parts = deal(NAMES, 4)
    assert sorted(len(part) for part in parts) == [12, 12, 13, 13]
    assert sorted(name for part in parts for name in part) == NAMES


def test_it_depends_on_names_and_seed_only() -> None:
    assert deal(NAMES[::-1], 4) == deal(NAMES, 4)
    assert deal(NAMES, 4, seed=1) != deal(NAMES, 4)


@pytest.mark.parametrize("parts", [0, 51])
def test_more_clients_than_people_are_refused(parts: int) -> None:
    with pytest.raises(DataError, match="cannot partition 50 homes among"):
        deal(NAMES, parts)


def test_randomness_is_somebody_s_own() -> None:
    assert own_rng(0, "ann").random() == own_rng(0, "ann").random()
    assert len({own_rng(seed, name).random() for seed in (0, 1) for name in ("ann", "bob")}) == 4
