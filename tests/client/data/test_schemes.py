"""Partitions of people by the schemes of studies of drift."""

from pathlib import Path

import numpy as np
import pytest

from client.data.read import read_all
from client.data.schemes import CLASSES, Scheme, scheme_of
from common.arrays import Floats
from common.errors import ConfigError, DataError
from deploy.cli.options import RunRequest, TrainingData
from deploy.data.sources import partition_source
from deploy.federation.local_clients import prepare_clients, prepare_simulation
from deploy.federation.request import stored_scheme
from deploy.federation.runs import origin_of, runs_folder
from server.record.folder import RunDirectory

LABELS: Floats = np.random.default_rng(0).permutation(400).astype(float)


def spread(text: str, clients: int = 8) -> Floats:
    """Return the share of each client's units in its two most frequent classes of ten."""
    scheme = scheme_of(text)
    assert scheme
    parts = scheme.divide(LABELS, clients, seed=1)
    assert sorted(np.concatenate(parts).tolist()) == list(range(400))
    counts = [np.bincount((LABELS[part] * CLASSES / 400).astype(int), minlength=CLASSES) for part in parts]
    return np.array([np.sort(count)[-2:].sum() / count.sum() for count in counts])


def test_schemes_by_label_gather_classes() -> None:
    few, half, much = (spread(text).mean() for text in ("dirichlet:0.1", "dirichlet:1", "dirichlet:1000"))
    assert few > half + 0.1 > much + 0.2
    assert spread("pathological:1").min() == 1
    assert spread("iid").mean() < 0.45


FLWR_DATASETS = {
    "iid": [50, 50, 50, 50, 50, 50, 50, 50],
    "linear": [11, 22, 33, 44, 55, 66, 77, 92],
    "square": [1, 7, 17, 31, 49, 70, 96, 129],
    "exponential": [4, 12, 34, 93, 257],
    "dirichlet:0.3": [93, 54, 59, 16, 52, 57, 34, 35],
}
"""Sizes of clients, of 400 rows in ten equal classes at seed 0, by flwr-datasets 0.6.1.

`DirichletPartitioner` with `min_partition_size=1` and `self_balancing=False`.
"""


@pytest.mark.parametrize("text", FLWR_DATASETS)
def test_sizes_are_those_of_flwr_datasets(text: str) -> None:
    scheme, sizes = scheme_of(text), FLWR_DATASETS[text]
    assert scheme
    assert [len(part) for part in scheme.divide(LABELS, len(sizes), seed=0)] == sizes


def test_shards_are_those_of_its_shard_partitioner() -> None:
    """Eight clients with two of 16 shards each at seed 1; the classes of the first three."""
    parts = Scheme("pathological", 2).divide(LABELS, 8, seed=1)
    classes = [np.bincount((LABELS[part] * CLASSES / 400).astype(int), minlength=CLASSES).tolist() for part in parts]
    assert classes[:3] == [
        [15, 10, 0, 0, 0, 0, 0, 20, 5, 0],
        [0, 0, 0, 0, 25, 0, 25, 0, 0, 0],
        [0, 0, 20, 5, 0, 0, 0, 0, 10, 15],
    ]


def test_units_without_an_even_share_are_spread() -> None:
    assert [len(part) for part in Scheme("iid").divide(LABELS[:15], 8)] == [2] * 7 + [1]


@pytest.mark.parametrize("task", ["rules", "sessions", "ratings"])
def test_people_of_a_task_have_labels(task: str) -> None:
    scheme = Scheme("dirichlet", 0.3)
    first, again = (
        [[unit.name for unit in part.units] for part in partition_source(task, "demo:0-30", None, 3, scheme=scheme)]
        for _ in range(2)
    )
    assert first == again
    assert sorted(name for part in first for name in part) == [unit.name for unit in read_all(task, "demo:0-30").units]


@pytest.mark.parametrize(
    ("task", "clients", "scheme", "message"),
    [
        (
            "traffic",
            2,
            "dirichlet:0.3",
            "sensors of task 'traffic' have none; use iid, linear, square, exponential, or a task of rules, sessions",
        ),
        ("markets", 9, "iid", "--partition iid leaves 5 of 9 clients without data; lower --clients"),
        ("rules", 0, "iid", "--partition iid needs a number of clients; add --clients"),
        (
            "rules",
            9,
            "pathological:1",
            "--partition pathological:1 makes 9 shards of 4 units; lower it or --clients",
        ),
    ],
)
def test_partitions_that_cannot_be_made(task: str, clients: int, scheme: str, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        partition_source(task, "demo:0-4", None, clients, scheme=scheme_of(scheme))


@pytest.mark.parametrize(
    "text",
    ["dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:x", "pathological:1.5", "pathological:inf", "dirichlet:1e7"],
)
def test_a_scheme_needs_its_number(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--partition {text}: give a number above 0, at most 1,000,000, such as "):
        scheme_of(text)


def test_other_texts_are_columns_unless_they_are_slips() -> None:
    assert scheme_of("Shop") is scheme_of("") is scheme_of("site: old") is None
    with pytest.raises(ConfigError, match="--partition iid:2: iid takes no number; use --partition iid"):
        scheme_of("iid:2")
    with pytest.raises(ConfigError, match=r"unknown scheme 'dirichle'; did you mean 'dirichlet'\?"):
        scheme_of("dirichle:0.3")


def test_a_run_records_its_scheme_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = RunRequest(task="ratings", run_id="skewed")
    _, parts, _ = prepare_simulation(request, TrainingData("demo:0-12", partition="pathological:2"), "", 3, None)
    folder = RunDirectory(runs_folder(), "skewed")
    origin = origin_of(folder.path)
    assert origin
    assert (origin.scheme, len(parts)) == ("pathological:2", 3)
    assert str(stored_scheme(folder, None)) == "pathological:2"
    with pytest.raises(ConfigError, match="continues with its own partition pathological:2; remove --partition iid"):
        stored_scheme(folder, Scheme("iid"))
    with pytest.raises(ConfigError, match=r"demo clients of `fedloom up` generate their own; use fedloom simulate"):
        prepare_clients(RunRequest(task="rules"), TrainingData(partition="iid"), "", 3, None, None)
    table = tmp_path / "ratings.csv"
    rows = [f"{name},item{k},{1 + (k + n) % 5}" for n, name in enumerate("abcdefgh") for k in range(5)]
    table.write_text("\n".join(["user,item,rating", *rows]))
    dealt = prepare_clients(RunRequest(task="ratings"), TrainingData(str(table), partition="linear"), "", 3, None, None)
    assert [len(part.units) for part in dealt.partitions] == [1, 2, 5]
