"""A client's share of a source, and the fingerprint its state is bound to."""

from pathlib import Path

import numpy as np
import pytest

from client.data.dataset import AnyDataset, fingerprint
from client.data.read import demo_partition, read_all, read_partition, with_test
from client.tasks.rules.data.homes import Home, write_homes
from client.tasks.rules.data.reader import read_homes
from client.tasks.rules.task import TASK
from common.errors import ConfigError, DataError
from common.tasks.rules.vocabulary import demo_catalogue


def homes(part: AnyDataset) -> tuple[Home, ...]:
    return part.units


def written(folder: Path, name: str, homes: str) -> Path:
    dataset = read_all("rules", homes)
    write_homes(folder / name, dataset)
    return folder / name


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_the_parts_of_the_demo_are_the_demo(parts: int) -> None:
    whole = read_all("rules", "demo:10-31").units
    shares = [homes(read_partition("rules", "demo:10-31", (k, parts))) for k in range(parts)]
    assert [h.name for share in shares for h in share] == [h.name for h in whole]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    for ours, theirs in zip((h for share in shares for h in share), whole, strict=True):
        np.testing.assert_array_equal(ours.rules, theirs.rules)


def test_the_demo_without_a_range_is_cut_too() -> None:
    shards = [demo_partition("rules", "demo", (k, 4)) for k in range(4)]
    assert shards == [demo_partition("rules", f"demo:0-{TASK.demo_units}", (k, 4)) for k in range(4)]
    assert shards[0] == f"demo:0-{TASK.demo_units // 4}"


@pytest.mark.parametrize("name", ["homes.csv", "demo.csv", "demo-homes.csv"])
def test_the_parts_of_a_file_are_its_homes_whatever_it_is_called(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, name, "demo:0-9")
    monkeypatch.chdir(tmp_path)
    shares = [homes(read_partition("rules", name, (k, 2), 0, demo_catalogue())) for k in range(2)]
    users = sorted(h.name for share in shares for h in share)
    assert users == [h.name for h in read_homes(name, demo_catalogue()).units]


def test_more_parts_than_homes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot partition"):
        read_partition("rules", str(written(tmp_path, "homes.csv", "demo:0-3")), (0, 9))


def test_other_data_other_fingerprint(tmp_path: Path) -> None:
    path = str(written(tmp_path, "homes.csv", "demo:0-5"))
    same = str(written(tmp_path, "copy.csv", "demo:0-5"))
    other = str(written(tmp_path, "other.csv", "demo:0-6"))
    prints = [fingerprint(path, (0, 1), 0), fingerprint(other, (0, 1), 0), fingerprint(path, (0, 2), 0)]
    prints += [fingerprint("demo", (0, 1), 0), fingerprint("demo", (0, 1), 1), fingerprint("demo:0-5", (0, 1), 0)]
    assert len(set(prints)) == 6
    assert fingerprint(same, (0, 1), 0) == prints[0], "it is the data that count, not where they lie"


def test_a_folder_is_all_its_files_and_folders_within_do_not_matter(tmp_path: Path) -> None:
    written(tmp_path, "homes.csv", "demo:0-5")
    before = fingerprint(str(tmp_path), (0, 1), 0)
    (tmp_path / "notes").mkdir()
    assert fingerprint(str(tmp_path), (0, 1), 0) == before
    written(tmp_path, "more.csv", "demo:5-6")
    assert fingerprint(str(tmp_path), (0, 1), 0) != before


def test_sessions_held_out_in_a_file_of_their_own_are_part_of_the_source(tmp_path: Path) -> None:
    clicks, test = tmp_path / "clicks.txt", tmp_path / "held-out.txt"
    clicks.write_text("a b\nb a\n")
    test.write_text("a b\n")
    source = with_test("sessions", str(clicks), str(test))
    part = read_partition("sessions", source, (0, 1))
    assert [len(visitor.test) for visitor in part.units] == [1]

    before = fingerprint(source, (0, 1), 0)
    assert before != fingerprint(str(clicks), (0, 1), 0)
    test.write_text("b a\n")
    assert fingerprint(source, (0, 1), 0) != before
    test.unlink()
    with pytest.raises(DataError, match=r"held-out\.txt: No such file"):
        fingerprint(source, (0, 1), 0)


def test_without_a_test_file_the_source_stays_as_it_is(tmp_path: Path) -> None:
    assert with_test("rules", "homes.csv", "") == "homes.csv"
    odd = written(tmp_path, "my::homes.csv", "demo:0-2")
    assert fingerprint(str(odd), (0, 1), 0) == fingerprint(str(written(tmp_path, "homes.csv", "demo:0-2")), (0, 1), 0)


@pytest.mark.parametrize(
    ("task", "source", "message"),
    [("traffic", "a.csv", "--test does not apply to task traffic"), ("sessions", "demo:0-5", "set --data")],
)
def test_where_no_test_file_makes_sense_it_is_refused(task: str, source: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_test(task, source, "held-out.txt")
