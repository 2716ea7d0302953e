"""Data of each client of a federation on this machine."""

from pathlib import Path

import numpy as np
import pytest

from client.data.dataset import AnyDataset
from client.data.read import read_all, with_test
from common.errors import DataError
from deploy.data.partitions import PARTITIONS, STATE
from deploy.data.sources import (
    DEFAULT_CLIENTS,
    MOST_CLIENTS,
    partition_source,
    stored_clients,
    unit_names,
    write_clients,
)
from tests.support.partitions import partition_for


def held_out(part: AnyDataset) -> list[tuple[str, list[list[int]]]]:
    """Return each visitor's test cases: earlier clicks and the next."""
    return [(v.name, [[*np.append(case.prefix, case.target)] for case in v.test]) for v in part.units]


def test_each_client_has_its_share_of_the_test_sessions(tmp_path: Path) -> None:
    (tmp_path / "clicks.txt").write_text("a b\nb a\n" * 40)  # 80 sessions without users: four groups
    (tmp_path / "held-out.txt").write_text("a b\nb a b\na b a\n")
    source = with_test("sessions", str(tmp_path / "clicks.txt"), str(tmp_path / "held-out.txt"))
    whole = read_all("sessions", source)
    parts = partition_source("sessions", source, None, 2)
    visitors = [visitor for part in parts for visitor in held_out(part)]
    assert sorted(visitors) == sorted(held_out(whole))
    assert sum(len(test) for _, test in visitors) == 5

    specs = write_clients("sessions", source, parts, tmp_path / "home", tmp_path / "partitions")
    stored = [read_all("sessions", spec.data, vocabulary=whole.vocabulary) for spec in specs]
    assert [held_out(part) for part in stored] == [held_out(part) for part in parts]
    training = write_clients(
        "sessions", str(tmp_path / "clicks.txt"), parts, tmp_path / "home", tmp_path / "partitions"
    )
    assert training[0].data == specs[0].data, "the same source with and without test sessions"


@pytest.mark.usefixtures("workplace")
def test_a_resumed_run_finds_its_clients() -> None:
    specs = partition_for("one")
    assert stored_clients(Path("up", "one").resolve()) == specs
    assert specs[0].state == Path(PARTITIONS, STATE).resolve()
    assert specs[0].source == str(Path("my.csv").resolve())


def shops(folder: Path, count: int) -> str:
    """Write a folder of markets with their catalogue; each market has one item more than the one before."""
    folder.mkdir()
    (folder / "catalogue.csv").write_text("item,title,description\n" + "".join(f"i{k},Item {k},\n" for k in range(9)))
    for k in range(count):
        bought = [f"{user},i{item}\n" for user in ("ann", "bob") for item in range(3 + k % 6)]
        (folder / f"m{k:02d}.csv").write_text("user,item\n" + "".join(bought))
    return str(folder)


def test_by_default_each_market_is_a_client(tmp_path: Path) -> None:
    four = partition_source("markets", shops(tmp_path / "four", 4), None, None)
    assert [[m.name for m in part.units] for part in four] == [["m00"], ["m01"], ["m02"], ["m03"]]
    assert unit_names("markets", four) == {"client-0": "m00", "client-1": "m01", "client-2": "m02", "client-3": "m03"}

    many = partition_source("markets", shops(tmp_path / "many", MOST_CLIENTS + 2), None, None)
    assert len(many) == MOST_CLIENTS
    assert sorted(" + ".join(unit_names("markets", many).values()).split(" + ")) == [
        f"m{k:02d}" for k in range(MOST_CLIENTS + 2)
    ]

    assert len(partition_source("markets", "demo:1-4", None, None)) == 3


def test_a_catalogue_is_no_client(tmp_path: Path) -> None:
    two = shops(tmp_path / "two", 2)
    assert [len(part.units) for part in partition_source("markets", two, None, 2)] == [1, 1]
    with pytest.raises(DataError, match="2 markets"):
        partition_source("markets", two, None, 3)  # two tables and the catalogue


@pytest.mark.parametrize(("tables", "clients"), [(1, DEFAULT_CLIENTS), (3, 3), (MOST_CLIENTS + 1, DEFAULT_CLIENTS)])
def test_by_default_each_table_of_a_folder_is_a_client(tmp_path: Path, tables: int, clients: int) -> None:
    homes = "".join(f"{home},Button,B1,pressed,turn on,Light,L1\n" for home in range(6))
    for k in range(tables):
        header = "user_id,trigger_device,trigger_device_id,trigger_state,action,action_device,action_device_id\n"
        (tmp_path / f"{k}.csv").write_text(header + homes.replace(",B", f",{k}B").replace("\n", f"{k}\n"))
    parts = partition_source("rules", str(tmp_path), None, None)
    assert len(parts) == clients
    assert all(part.vocabulary == parts[0].vocabulary for part in parts)


@pytest.mark.parametrize("task", ["rules", "sessions", "traffic", "ratings"])
def test_by_default_demo_data_are_partitioned_among_four_unnamed_clients(task: str) -> None:
    parts = partition_source(task, "demo:0-8", None, None)
    assert (len(parts), unit_names(task, parts)) == (DEFAULT_CLIENTS, {})
