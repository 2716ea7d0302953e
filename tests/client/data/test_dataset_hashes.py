"""Every reader gives the same data sets as before the table engine, on the demos and on all public sets.

Set FEDLOOM_WRITE_HASHES to store the hashes of the present readers in place of the old ones.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.data.read import read_all
from client.tasks.markets.data.markets import write_markets
from client.tasks.markets.data.reader import read_markets
from client.tasks.ratings.data.raters import write_raters
from client.tasks.ratings.data.reader import read_raters
from client.tasks.rules.data.homes import write_homes
from client.tasks.rules.data.reader import read_homes
from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import write_visitors
from client.tasks.traffic.data.reader import read_series
from client.tasks.traffic.data.series import write_series
from common.tasks.traffic.vocabulary import SensorVariables
from tests.support.digests import digest
from tests.support.files import folder_of

STORED = Path(__file__).with_name("dataset_hashes.json")
READERS: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    "rules": (read_homes, write_homes),
    "sessions": (read_visitors, write_visitors),
    "traffic": (read_series, write_series),
    "ratings": (read_raters, write_raters),
    "markets": (read_markets, write_markets),
}
QUARTERS = SensorVariables(variables=("volume",), step_seconds=900)
REAL: list[tuple[str, str, dict[str, Any]]] = [
    ("rules", "ifttt-recrules", {}),
    ("rules", "ifttt-recrules", {"setup": "B"}),
    ("sessions", "yoochoose1_64", {}),
    ("sessions", "yoochoose1_64/train_sessions.txt.gz", {"group": 7}),
    ("sessions", "diginetica", {}),
    ("sessions", "gowalla", {}),
    ("sessions", "gowalla/test.txt.gz", {}),
    ("sessions", "yoochoose-clicks-100k", {}),
    ("traffic", "vicroads-scats-boroondara-2006", {}),
    ("traffic", "vicroads-scats-boroondara-2006", {"measures": QUARTERS}),
    ("traffic", "vicroads-scats-10sites", {}),
    ("traffic", "vicroads-scats-10sites", {"measures": QUARTERS}),
    ("traffic", "metro-interstate-i94", {}),
    ("traffic", "fhwa-state-daily", {}),
    ("ratings", "movielens-100k", {}),
    ("ratings", "filmtrust", {}),
    ("ratings", "filmtrust/ratings.txt.gz", {}),
    ("ratings", "filmtrust/trust.txt.gz", {}),
    ("ratings", "filmtrust/filmtrust_874_valid.tsv.gz", {}),
    ("markets", "xmarket-electronics", {}),
    ("markets", "xmarket-electronics/uk_5core.txt.gz", {}),
]


def check(name: str, value: str) -> None:
    """Compare a hash with the stored one."""
    stored = json.loads(STORED.read_text("utf-8"))
    if "FEDLOOM_WRITE_HASHES" in os.environ:
        STORED.write_text(json.dumps({**stored, name: value}, indent=1, sort_keys=True) + "\n", "utf-8")
        return
    assert stored[name] == value


@pytest.mark.parametrize("task", READERS)
@pytest.mark.parametrize(("source", "seed"), [("demo", 0), ("demo:2-5", 3)])
def test_the_demo_is_the_same(task: str, source: str, seed: int) -> None:
    check(f"{task} {source} {seed}", digest(read_all(task, source, seed)))


@pytest.mark.parametrize("task", READERS)
def test_the_demo_is_written_and_read_the_same(task: str, tmp_path: Path) -> None:
    """The bytes of a client's own table bind its ledger and its state."""
    read, write = READERS[task]
    demo, path = read_all(task, "demo:0-6"), tmp_path / "own.csv"
    write(path, demo)
    check(f"{task} written", hashlib.sha256(path.read_bytes()).hexdigest()[:16])
    check(f"{task} read back", digest(read(path, demo.vocabulary)))
    check(f"{task} read back without a vocabulary", digest(read(path)))


@pytest.mark.parametrize(("task", "name", "options"), REAL)
def test_a_public_set_is_read_the_same(task: str, name: str, options: dict[str, Any]) -> None:
    folder, _, file = name.partition("/")
    check(f"{task} {name} {options}", digest(READERS[task][0](folder_of(folder) / file, **options)))
