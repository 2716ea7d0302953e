"""Partitions of own data: later runs find the clients of each person, and their privacy ledgers."""

import json
from pathlib import Path

import pytest
from pyarrow import csv

from common.errors import DataError, LedgerError, RefusedError
from deploy.cli.options import DataRequest
from deploy.data.partitions import PARTITIONS, partition_ledgers, remember_source, remembered
from deploy.data.sources import partition_source
from deploy.federation.runs import Command, Origin, origin_to_json
from fedloom.arguments import stored
from tests.support.partitions import (
    EPSILON,
    EXHAUSTED,
    invoke,
    names_of,
    partition_for,
    people_of,
    rows,
    spend,
    write_ratings,
    write_two_tables,
)

pytestmark = pytest.mark.usefixtures("workplace")


def test_later_runs_find_the_spent_budget_also_after_a_row_was_added() -> None:
    specs = partition_for("one")
    assert [spend(spec, "one") for spec in specs] == pytest.approx([EPSILON, EPSILON])
    for spec in partition_for("two"):
        with pytest.raises(RefusedError, match=EXHAUSTED):
            spend(spec, "two")
    before = [Path(spec.data).read_bytes() for spec in specs]
    with Path("my.csv").open("a") as file:
        file.write("u0,i9,3\n")
    Path("items.json").write_text(Path("items.json").read_text().replace('"i5"', '"i5","i9"'))
    specs = partition_for("three")
    assert before != [Path(spec.data).read_bytes() for spec in specs], "a partition has the row"
    for spec in specs:
        with pytest.raises(RefusedError, match=EXHAUSTED):
            spend(spec, "three")


def test_the_budget_of_the_data_is_that_of_its_partitions() -> None:
    specs = partition_for("one")
    for spec in specs:
        spend(spec, "one")
    ledgers = json.loads(invoke("budget --data my.csv --state state --json").stdout)
    assert [ledger["ledger"] for ledger in ledgers] == [
        str(Path(spec.data).with_name(".ratings.csv.fedloom-ledger")) for spec in specs
    ]
    assert [ledger["left"] for ledger in ledgers] == pytest.approx([0.0, 0.0], abs=1e-6)


def test_people_stay_with_the_client_whose_ledger_counts_them() -> None:
    specs = partition_for("one")
    spend(specs[0], "one")
    before = [people_of(spec) for spec in specs]
    with Path("my.csv").open("a") as file:
        file.write(rows([f"new{k}" for k in range(5)]))
    fresh = names_of(partition_source("ratings", "my.csv", None, 2))
    assert not all(old <= new for old, new in zip(before, fresh, strict=True)), "a new partition would move some"
    after = [people_of(spec) for spec in partition_for("two")]
    assert all(old <= new for old, new in zip(before, after, strict=True))
    assert set.union(*after) == set.union(*fresh)

    removed = sorted(before[0])[0]
    text = Path("my.csv").read_text()
    Path("my.csv").write_text("".join(line for line in text.splitlines(True) if not line.startswith(f"{removed},")))
    assert removed not in set.union(*map(people_of, partition_for("three")))
    Path("my.csv").write_text(text)
    assert removed in people_of(partition_for("four")[0]), "restored people return to their client"
    write_ratings(Path("my.csv"), sorted(before[1]))
    with pytest.raises(DataError, match="partition client-0 has no records left"):
        partition_for("five")
    [units] = PARTITIONS.glob("*/people.json")
    units.unlink()
    with pytest.raises(LedgerError, match=r"people\.json, the file with the client of each unit, is missing"):
        partition_for("six")


def test_without_noise_data_are_partitioned_as_in_a_simulation() -> None:
    partition_for("one")
    with Path("my.csv").open("a") as file:
        file.write(rows(["new"]))
    parts = partition_source("ratings", "my.csv", None, 2)
    assert [people_of(spec) for spec in partition_for("two")] == names_of(parts)


def test_a_copy_finds_the_ledgers_and_a_missing_ledger_stops_the_run() -> None:
    specs = partition_for("one")
    spend(specs[0], "one")
    Path("copy.csv").write_bytes(Path("my.csv").read_bytes())
    with pytest.raises(RefusedError, match=EXHAUSTED):
        spend(partition_for("two", "copy.csv")[0], "two")
    [ledger] = partition_ledgers(PARTITIONS.resolve(), "copy.csv")
    assert ledger == Path(specs[0].data).with_name(".ratings.csv.fedloom-ledger")
    ledger.rename("elsewhere")
    with pytest.raises(LedgerError, match="is gone"):
        partition_for("three")


def test_tables_of_clients_stay_in_their_folder() -> None:
    folder = write_two_tables()
    specs = partition_for("one", "tables")
    assert [Path(spec.data) for spec in specs] == [(folder / name).resolve() for name in ("a.csv", "b.csv")]
    spend(specs[0], "one")
    with pytest.raises(RefusedError, match=EXHAUSTED):
        spend(partition_for("two", "tables")[0], "two")
    assert partition_ledgers(PARTITIONS.resolve(), "tables") == [folder.resolve() / ".a.csv.fedloom-ledger"]


def test_an_equal_table_in_memory_finds_the_spent_budget() -> None:
    table = csv.read_csv("my.csv")
    for run, left in (("one", EPSILON), ("two", 0.0)):
        with stored(table.slice(0), trains=True) as data:
            specs = partition_for(run, data)
        for spec in specs:
            if left:
                assert spend(spec, run) == pytest.approx(left)
            else:
                with pytest.raises(RefusedError, match=EXHAUSTED):
                    spend(spec, run)


@pytest.mark.parametrize(
    ("command", "task", "is_found"), [("serve", "ratings", True), ("up", "ratings", False), ("submit", "rules", False)]
)
def test_a_joined_client_need_not_repeat_its_data(command: Command, task: str, is_found: bool, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "origin.json").write_bytes(origin_to_json(Origin(command, "", 2)))
    shop = DataRequest(str(tmp_path / "shop.csv"), columns=["user=Kunde"], decimal="comma")
    remember_source(tmp_path / "state" / "shop", shop, "ratings")
    for given in (DataRequest(), DataRequest(shop.data)):
        found = remembered(given, tmp_path / "run", task, tmp_path / "state")
        expected = shop if is_found else given
        assert (found.data, found.dialect) == (expected.data, expected.dialect)
    other = DataRequest("other.csv")
    assert remembered(other, tmp_path / "run", task, tmp_path / "state") == other


def test_another_table_with_the_chosen_columns_is_read_with_the_choice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = DataRequest(str(tmp_path / "may.csv"), columns=["user=Kunde", "timestamp=Tag+Uhr"], where=["Art=Kauf"])
    remember_source(Path(".fedloom/simulate/run"), first)
    (tmp_path / "june.csv").write_text("Kunde;item;rating;Tag;Uhr;Art\na;x;1;2024-06-01;9:00;Kauf\n")
    (tmp_path / "other.csv").write_text("Kunde;item;rating;Tag;Uhr\na;x;1;2024-06-01;9:00\n")
    found = remembered(DataRequest(str(tmp_path / "june.csv")), tmp_path / "run", "ratings", tmp_path)
    assert (found.data, found.dialect) == (str(tmp_path / "june.csv"), first.dialect)
    options = "--column user=Kunde --column timestamp=Tag+Uhr --where Art=Kauf"
    assert f"june.csv: read as the data of run run, with {options}\n" in capsys.readouterr().err
    for given in (
        DataRequest(str(tmp_path / "other.csv")),
        DataRequest("missing.csv"),
        DataRequest("demo:0-5"),
        DataRequest(str(tmp_path / "june.csv"), columns=["user=Art"]),
    ):
        assert remembered(given, tmp_path / "run", "ratings", tmp_path) == given
    assert not capsys.readouterr().err
