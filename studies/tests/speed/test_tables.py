"""Tables that the timing of readers writes."""

from pathlib import Path

import pytest

from client.data.tables.reader import read_table
from client.tasks.registry import CLIENT_TASKS
from studies.speed.tables import READERS, columns_of, measure, write_table


@pytest.mark.parametrize("name", [*(f"{task}.csv" for task in READERS), "ratings.jsonl"])
def test_a_table_has_the_rows_that_are_timed(name: str, tmp_path: Path) -> None:
    task = name.partition(".")[0]
    path = write_table(tmp_path / name, columns_of(task, 600))
    assert len(read_table(path, CLIENT_TASKS[task].schema)) == 600
    found = measure(task, path, 2, lambda task, path: 60.0)
    assert found["earlier"] == 60
    assert found["ratio"] > 2
