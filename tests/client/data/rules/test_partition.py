"""One file of users as several clients' files."""

from pathlib import Path

import pytest

from client.data.rules.generator import demo_homes
from client.data.rules.homes import Dataset, Home
from client.data.rules.partition import partition, write_partition
from client.data.rules.reader import read_homes
from common.errors import DataError
from common.tasks.rules_demo import demo_catalogue

HOMES = demo_homes(0, 50, seed=0)


def users(homes: tuple[Home, ...]) -> list[str]:
    return [home.user for home in homes]


def test_every_home_goes_to_one_part_and_parts_are_even() -> None:
    parts = partition(HOMES, 4, seed=0)
    assert sorted(len(part) for part in parts) == [12, 12, 13, 13]
    assert sorted(user for part in parts for user in users(part)) == users(HOMES)


def test_a_partition_depends_on_users_and_seed_only() -> None:
    again = partition(HOMES[::-1], 4, seed=0)
    assert [users(part) for part in again] == [users(part) for part in partition(HOMES, 4, seed=0)]
    assert [users(part) for part in again] != [users(part) for part in partition(HOMES, 4, seed=1)]


def test_written_parts_read_as_the_same_homes(tmp_path: Path) -> None:
    paths = write_partition(Dataset(HOMES, demo_catalogue()), tmp_path / "clients", 3, seed=0)
    assert [path.name for path in paths] == ["client-1.csv", "client-2.csv", "client-3.csv"]
    assert paths[0].stat().st_mode & 0o077 == 0
    for path, part in zip(paths, partition(HOMES, 3, seed=0), strict=True):
        again = read_homes(path, demo_catalogue()).homes
        assert [(home.user, home.rules.tolist()) for home in again] == [(h.user, h.rules.tolist()) for h in part]
    whole = read_homes(tmp_path / "clients", demo_catalogue()).homes
    assert users(whole) == users(HOMES)


@pytest.mark.parametrize("parts", [0, 51])
def test_more_clients_than_homes_are_refused(parts: int) -> None:
    with pytest.raises(DataError, match="cannot share 50 homes among"):
        partition(HOMES, parts, seed=0)
