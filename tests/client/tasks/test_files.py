"""Files of every task: what is written is read back, and partitions of a source add up to it."""

from dataclasses import replace
from pathlib import Path

import pytest

from client.data.read import find_own_tables, read_all, read_partition
from client.tasks.registry import CLIENT_TASKS
from tests.support.digests import digest


@pytest.mark.parametrize("task", CLIENT_TASKS)
def test_demo_data_survive_the_file(task: str, tmp_path: Path) -> None:
    kind, path = CLIENT_TASKS[task], tmp_path / "client.csv"
    demo = read_all(task, "demo:2-5", seed=1)
    demo = replace(demo, units=tuple(sorted(demo.units, key=lambda unit: str(unit.name))))
    kind.write(path, demo)
    again = read_all(task, str(path), vocabulary=demo.vocabulary)
    assert digest(again) == digest(demo)
    assert not again.notes or task == "markets"  # their readers note the meaning of an edge
    shares = [read_partition(task, str(path), (k, 2), 0, demo.vocabulary) for k in range(2)]
    units = sorted((unit for share in shares for unit in share.units), key=lambda unit: str(unit.name))
    assert digest(replace(demo, units=tuple(units))) == digest(demo)


@pytest.mark.parametrize("task", CLIENT_TASKS)
def test_a_folder_of_written_tables_is_the_whole(task: str, tmp_path: Path) -> None:
    kind, demo = CLIENT_TASKS[task], read_all(task, "demo:0-6")
    demo = replace(demo, units=tuple(sorted(demo.units, key=lambda unit: str(unit.name))))
    for number in range(3):
        kind.write(tmp_path / f"client-{number}.csv", replace(demo, units=demo.units[number::3]))
    assert digest(read_all(task, str(tmp_path), vocabulary=demo.vocabulary)) == digest(demo)
    assert not kind.published(tmp_path)
    assert len(find_own_tables(task, str(tmp_path))) == 3
