"""Parquet folders as on Hugging Face: splits, missing parts, partition columns, folders side by side."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from client.data.read import find_own_tables, partition_read, read_all
from client.data.tables.files import clients_in, split_files, splits_of
from client.data.tables.schema import Dialect
from client.tasks.ratings.data.raters import split_rater
from common.errors import ConfigError, DataError
from common.tasks.ratings.options import RatingsOptions
from deploy.data.check import check_data
from deploy.data.sources import partition_source
from tests.support.tables import TABLES

Row = tuple[str, str, float, int]


def write(path: Path, rows: Sequence[Row], **columns: Sequence[object]) -> Path:
    """Write ratings with times as Parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    named = zip(("user_id", "item_id", "rating", "timestamp"), zip(*rows, strict=True), strict=True)
    pyarrow.parquet.write_table(pyarrow.table({**{name: list(column) for name, column in named}, **columns}), path)
    return path


ANN: list[Row] = [("ann", "tea", 4.0, 1_600_000_000), ("ann", "rum", 3.0, 1_600_000_060)]
BOB: list[Row] = [("bob", "tea", 2.0, 1_600_000_000), ("bob", "gin", 5.0, 1_600_000_060)]


@pytest.mark.parametrize("place", [".", "data", "default"])
def test_splits_are_found_in_the_folder_in_data_or_in_a_configuration(place: str, tmp_path: Path) -> None:
    train = [write(tmp_path / place / f"train-{k:05d}-of-00002.parquet", rows) for k, rows in enumerate((ANN, BOB))]
    test = write(tmp_path / place / "test-00000-of-00001.parquet", ANN)
    assert splits_of(tmp_path) == {"train": [path.resolve() for path in train], "test": [test.resolve()]}
    assert find_own_tables("ratings", str(tmp_path)) == [], "parts are no clients"
    assert [rater.name for rater in read_all("ratings", str(tmp_path)).units] == ["ann", "bob"]


@pytest.mark.parametrize(("split", "held"), [("test", 1), ("validation", 0), ("valid", 0)])
def test_sessions_hold_the_test_split_out(split: str, held: int, tmp_path: Path) -> None:
    write(tmp_path / "data" / "train-00000-of-00001.parquet", [*ANN, *BOB])
    write(tmp_path / "data" / f"{split}-00000-of-00001.parquet", [("ann", "rum", 1.0, 1_600_090_000), ANN[0], ANN[1]])
    assert [len(visitor.test) for visitor in read_all("sessions", str(tmp_path)).units] == [held, 0]


@pytest.mark.parametrize(("name", "validation"), [("validation", 1), ("valid", 1), ("extra", 0)])
def test_ratings_keep_the_splits_of_a_folder(name: str, validation: int, tmp_path: Path) -> None:
    write(tmp_path / "data" / "train-00000-of-00001.parquet", [*ANN, *BOB])
    write(tmp_path / "data" / "test-00000-of-00001.parquet", [("ann", "gin", 1.0, 1_600_090_000), ANN[0]])
    write(tmp_path / "data" / f"{name}-00000-of-00001.parquet", [("ann", "ale", 2.0, 1_600_090_000)])
    dataset = read_all("ratings", str(tmp_path))
    ann, bob = (split_rater(rater, dataset.vocabulary, RatingsOptions(), 0) for rater in dataset.units)
    items = dataset.vocabulary.items
    assert {items[k] for k in ann.test.items} == {"gin", "tea"}, "of equal times, the test rating counts"
    assert {items[k] for k in ann.validation.items} == {"ale"} - ({"ale"} if not validation else set())
    assert (len(ann.train), len(bob.train), len(bob.test)) == (2 - validation, 2, 0)
    report = check_data("ratings", str(tmp_path))
    assert report.learning is not None
    assert (report.learning.train.most, report.learning.test.most) == (2, 2)
    assert "holds 20% of the ratings without a split out" in report.learning.need


def test_a_folder_without_a_test_split_holds_out_shares(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", f"item {k}", 3.0, 1_600_000_000) for k in range(10)]
    write(tmp_path / "train-00000-of-00001.parquet", rows)
    write(tmp_path / "valid-00000-of-00001.parquet", [("ann", "ale", 2.0, 1_600_090_000)])
    dataset = read_all("ratings", str(tmp_path))
    ann = split_rater(dataset.units[0], dataset.vocabulary, RatingsOptions(validation_share=0.5), 0)
    assert [len(part) for part in (ann.train, ann.validation, ann.test)] == [8, 1, 2]


@pytest.mark.parametrize("task", ["rules", "traffic", "markets"])
@pytest.mark.parametrize("split", ["test", "validation", "valid"])
def test_tasks_that_hold_out_a_share_themselves_refuse_such_a_split(task: str, split: str, tmp_path: Path) -> None:
    write(tmp_path / "data" / "train-00000-of-00001.parquet", ANN)
    write(tmp_path / "data" / f"{split}-00000-of-00001.parquet", BOB)
    said = f"task {task} holds out a share itself and would train on the split {split}; name one file of the folder, or move"
    with pytest.raises(DataError, match=said):
        read_all(task, str(tmp_path))


def test_missing_parts_are_named(tmp_path: Path) -> None:
    for part in (0, 2):
        write(tmp_path / "data" / f"train-{part:05d}-of-00006.parquet", ANN)
    said = (
        r"train-00001-of-00006\.parquet, train-00003-of-00006\.parquet, train-00004-of-00006\.parquet and 1 more missing; "
        "download all parts of the split"
    )
    for task in ("ratings", "sessions", "markets"):
        with pytest.raises(DataError, match=said):
            read_all(task, str(tmp_path))


@pytest.mark.parametrize("title", ["partition_id", "client_id"])
def test_a_partition_column_of_such_a_folder_makes_each_value_a_client(title: str, tmp_path: Path) -> None:
    write(tmp_path / "data" / "train-00000-of-00001.parquet", [*ANN, *BOB], **{title: [10, 2, 10, 10]})
    parts = partition_source("ratings", str(tmp_path), None)
    units = [{rater.name: rater.ratings.tolist() for rater in part.units} for part in parts]
    assert units == [{"ann (2)": [3.0]}, {"ann (10)": [4.0], "bob": [2.0, 5.0]}], "in the order of the numbers"
    report = check_data("ratings", str(tmp_path))
    assert [client.train for client in report.clients] == [1, 3]
    assert "the partition column makes 2 clients" in report.notes


@pytest.mark.parametrize("task", ["rules", "sessions", "ratings", "traffic", "markets"])
def test_any_table_is_partitioned_by_a_column_that_is_named(task: str, tmp_path: Path) -> None:
    titles, rows = TABLES[task]
    path = tmp_path / "a.csv"
    lines = [",".join(f'"{cell}"' for cell in (*row, f"shop {k // 2 % 2}")) for k, row in enumerate(rows)]
    path.write_text("\n".join([",".join((*titles, "Shop")), *lines]) + "\n")
    column = "speed" if task == "traffic" else "Shop"
    if task == "traffic":
        path.write_text("timestamp,volume,speed\n2024-01-01 10:00,1,3\n2024-01-01 11:00,2,4\n")
    whole = read_all(task, str(path), dialect=Dialect(partition=column))
    parts = partition_read(task, str(path), whole, 0, Dialect(partition=column))
    assert len(parts) == len(whole.clients) == 2
    assert sorted(unit.name for part in parts for unit in part.units) == [unit.name for unit in whole.units]
    assert all("\x1f" not in unit.name for unit in whole.units)


def test_another_number_of_clients_and_an_unknown_column_are_refused(tmp_path: Path) -> None:
    source = str(write(tmp_path / "a.parquet", [*ANN, *BOB], shop=["x", "y", "x", "y"]))
    with pytest.raises(DataError, match=r"has 2 values, each of which is a client, not 3; leave --clients out"):
        partition_source("ratings", source, None, 3, Dialect(partition="shop"))
    with pytest.raises(DataError, match="no column 'store' for --partition, and no scheme; the titles are "):
        read_all("ratings", source, dialect=Dialect(partition="store"))


def test_a_row_without_a_partition_is_refused_with_its_place(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ANN, shop=["x", None])
    with pytest.raises(DataError, match=r"row 2, column 'shop': empty cell \(1 of 2 cells\); fill it, or"):
        read_all("ratings", str(source), dialect=Dialect(partition="shop"))


def test_many_partitions_are_no_default_number_of_processes(tmp_path: Path) -> None:
    rows: list[Row] = [(f"u{k}", "tea", 1.0, 1_600_000_000) for k in range(9)]
    source = str(write(tmp_path / "a.parquet", rows, shop=[str(k) for k in range(9)]))
    dialect = Dialect(partition="shop")
    with pytest.raises(
        ConfigError, match=r"has 9 values; say --clients 9 for as many processes, or use fedloom simulate"
    ):
        partition_source("ratings", source, None, None, dialect)
    assert len(partition_source("ratings", source, None, 9, dialect)) == 9


def test_folders_side_by_side_are_clients(tmp_path: Path) -> None:
    for name, rows in (("partition_0", ANN), ("partition_1", BOB)):
        write(tmp_path / name / "data" / "train-00000-of-00001.parquet", rows)
    (tmp_path / "notes").mkdir()
    assert [path.name for path in clients_in(tmp_path)] == ["partition_0", "partition_1"]
    assert len(split_files(tmp_path)) == 2
    parts = partition_source("ratings", str(tmp_path), None, None)
    assert [[rater.name for rater in part.units] for part in parts] == [["ann"], ["bob"]]
