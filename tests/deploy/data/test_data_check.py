"""Check of data: typed report, every task, any bytes, little processor time."""

import json
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.data.read import partition, read_all
from common.errors import DataError
from common.tasks.registry import TASKS
from deploy.data.check import check_data, lines_of, require_trainable
from tests.support.tables import TABLES, write

CPU_SECONDS = 2.0  # of `fedloom check` on 300,000 rows
FEW_TRIES = 3


@pytest.mark.parametrize("task", TASKS)
def test_embedded_data_are_summarized(task: str) -> None:
    report = check_data(task, "demo", clients=2)
    require_trainable(report)
    assert report.learning is not None
    assert report.learning.trainable > 0
    assert [client.train > 0 for client in report.clients] == [True, True]
    assert sum(client.units for client in report.clients) == report.units
    assert json.loads(json.dumps(report.to_json()))["task"] == task


@pytest.mark.parametrize("task", TABLES)
def test_what_is_counted_is_what_training_reads(task: str, tmp_path: Path) -> None:
    path = str(write(tmp_path, "a.csv", *TABLES[task]))
    report, dataset = check_data(task, path), read_all(task, path)
    assert report.units == len(dataset.units)
    assert report.reading is not None
    assert report.reading.rows == len(TABLES[task][1])
    assert report.vocabulary == dataset.vocabulary.to_json()
    assert not any(str(one) in report.notes for one in report.reading.dropped)


def test_clients_of_a_folder_with_as_many_tables_own_a_table_each(tmp_path: Path) -> None:
    for name, users in (("a.csv", "ann"), ("b.csv", "bob")):
        (tmp_path / name).write_text(f"user,item,rating\n{users},tea,4\n{users},rum,4\n")
    report = check_data("ratings", str(tmp_path), clients=2)
    assert [(client.client, client.train) for client in report.clients] == [("client-0", 2), ("client-1", 2)]
    assert [Path(file.path).name for file in report.files] == ["a.csv", "b.csv"]
    assert "Read as" in list(lines_of(report)), "equal forms are shown once"


def test_examples_of_clients_are_those_of_the_partition(tmp_path: Path) -> None:
    rows = [[f"user-{k}", f"item-{i}", "3"] for k in range(9) for i in range(k)]
    path = str(write(tmp_path, "a.csv", ["user", "item", "rating"], rows))
    report = check_data("ratings", path, clients=3)
    sizes = [sum(len(rater.items) for rater in part.units) for part in partition(read_all("ratings", path), 3)]
    assert [client.train + client.test for client in report.clients] == sizes


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(sorted(TABLES)), st.sampled_from([".csv", ".jsonl", ".parquet", ""]))
def test_any_bytes_end_in_a_report_or_in_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, task: str, suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any-bytes{suffix}"
    path.write_bytes(content)
    with suppress(DataError):
        assert list(lines_of(check_data(task, str(path))))


@pytest.mark.parametrize("task", ["ratings", "sessions"])
def test_checking_many_rows_takes_little_time_and_no_torch(task: str, tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), 300_000
    path = tmp_path / "big.csv"
    columns = (rng.integers(0, high, rows) for high in (3000, 900, 10, 28, 12))
    lines = (
        f"u{u};m{i};{x / 2:.1f};{d + 1:02}/{m + 1:02}/2020".replace(".", ",")
        for u, i, x, d, m in zip(*columns, strict=True)
    )
    path.write_text("\n".join(["User;Movie;Rating;Date", *lines]) + "\n")
    program = (
        "import sys; from deploy.cli.app import app\n"
        f"sys.argv = ['fedloom', 'check', {str(path)!r}, '--task', '{task}', '--column', 'item=Movie', '--clients', '4']\n"
        "try: app()\nexcept SystemExit as exit: assert not exit.code\n"
        "assert not {'torch', 'flwr', 'sklearn', 'pandas'} & {name.partition('.')[0] for name in sys.modules}\n"
    )
    used = []
    for _ in range(FEW_TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if used[-1] < CPU_SECONDS:
            return
    pytest.fail(f"{min(used):.1f} s of processor time")
