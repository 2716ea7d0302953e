"""Dialects: titles, decimal mark and dates of an own table reach every reader; partitions have none."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

from client.data.read import WRITTEN, read_all, read_partition
from client.data.tables.schema import Dialect
from client.settings import ClientSettings
from common.errors import ConfigError
from deploy.cli.app import app
from deploy.data.sources import partition_source, stored_clients, write_clients
from deploy.federation import start as federation
from tests.support.digests import digest

ROWS = ("ann;tee;4,5;31/05/2024", "bob;tee;2;01/06/2024", "ann;gin;1,250;01/06/2024", "cyd;rum;3;05/06/2024")
TITLES = {"user": "Kunde", "item": "Artikel", "rating": "Sterne", "timestamp": "Wann"}
COLUMNS = [f"{name}={title}" for name, title in TITLES.items()]
WORDS = [*(word for column in COLUMNS for word in ("--column", column)), "--decimal", "comma", "--dates", "dmy"]
DIALECT = Dialect(TITLES, "comma", "dmy")


@pytest.fixture
def table(here: Path) -> Path:
    """Write ratings as a German spreadsheet does, below the working directory."""
    path = here / "tables" / "a.csv"
    path.parent.mkdir()
    path.write_text("\n".join(("Kunde;Artikel;Sterne;Wann", *ROWS)) + "\n")
    return path


def invoke(*words: str | Path) -> str:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.exception
    return done.output


def test_options_and_dialects_are_equivalent() -> None:
    assert list(DIALECT.options) == WORDS
    assert Dialect.of(COLUMNS, "comma", "dmy") == DIALECT
    assert Dialect().options == ()


def test_training_and_queries_read_the_owner_s_table(table: Path) -> None:
    invoke("simulate", "--task", "ratings", "--data", table, *WORDS, "--rounds", "1", "--run-id", "one")
    assert "gin" in invoke("recommend", "--run", "one", "--data", table, *WORDS, "--user", "bob")
    assert "gin" in invoke("recommend", "--run", "one", "--data", table, "--user", "bob"), (
        "the run remembers the options"
    )
    assert "gin" in invoke("recommend", "--run", "one", "--user", "bob"), "and the data"
    part = read_all("ratings", str(table), dialect=DIALECT)
    assert {rater.name: rater.ratings.tolist() for rater in part.units} == {"ann": [4.5, 1.25], "bob": [2], "cyd": [3]}


def test_properties_are_inferred_from_the_owner_s_table(tmp_path: Path) -> None:
    path = tmp_path / "road.csv"
    times = (np.datetime64("2024-01-01T00", "h") + np.arange(28 * 24)).astype(str)
    lines = (f"{t[8:10]}.{t[5:7]}.{t[:4]} {t[11:]}:00;{k % 24},5" for k, t in enumerate(times))
    path.write_text("\n".join(("Zeit;Verkehr", *lines)) + "\n")
    words = ("--column", "timestamp=Zeit", "--column", "volume=Verkehr", "--decimal", "comma")
    assert "volume" in invoke("properties", "--data", path, *words)


def test_a_client_process_gets_the_dialect_of_its_owner_s_table_only(table: Path, tmp_path: Path) -> None:
    table.with_name("b.csv").write_text(table.read_text().replace("cyd", "dan"))
    parts = partition_source("ratings", str(table.parent), None, 2, DIALECT)
    specs = write_clients("ratings", str(table.parent), parts, tmp_path / "home", tmp_path / "partitions", DIALECT)
    assert [spec.dialect for spec in specs] == [DIALECT.options] * 2
    assert stored_clients(tmp_path / "home") == specs, "a resumed run reads them alike"

    started: list[list[str]] = []
    child = SimpleNamespace(process=SimpleNamespace(pid=os.getpid()))
    processes = SimpleNamespace(start=lambda name, command, **rest: started.append(list(map(str, command))) or child)
    for spec in specs:
        spec.home.mkdir(parents=True, exist_ok=True)
        federation.start_client(cast(Any, processes), spec, "localhost:1", tmp_path / "ca.pem", None, 1.0)
    assert all(" ".join(WORDS) in " ".join(command) for command in started)

    parts = partition_source("ratings", str(table), None, 3, DIALECT)
    written = write_clients("ratings", str(table), parts, tmp_path / "other", tmp_path / "partitions", DIALECT)
    assert [spec.dialect for spec in written] == [WRITTEN.options] * 3, "no question that the owner has answered"
    assert {unit.name for spec in written for unit in read_all("ratings", spec.data).units} == {"ann", "bob", "cyd"}


def test_a_node_s_configuration_has_the_dialect_too(table: Path) -> None:
    lines = "\n".join(COLUMNS)
    settings = ClientSettings.from_node({"data": str(table), "columns": lines, "decimal": "comma", "dates": "dmy"}, "x")
    assert settings.dialect == DIALECT
    whole = read_partition("ratings", settings.data, settings.part, dialect=settings.dialect)
    assert digest(whole) == digest(read_all("ratings", str(table), dialect=DIALECT))
    assert ClientSettings.from_node({}, "x").dialect == Dialect()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--column", "user"), "--column user: write NAME=TITLE, such as user=Customer"),
        (
            ("--column", "usr=Kunde"),
            "--column usr=…: no such column; the task reads user, item, rating, timestamp, split",
        ),
        (("--decimal", "dot"), "--decimal 'dot': write one of auto, point, comma"),
        (("--dates", "dym"), "--dates 'dym': write one of auto, iso, unix, excel, dmy, mdy, ymd, order"),
    ],
)
def test_invalid_dialects_are_refused(table: Path, words: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["simulate", "--task", "ratings", "--data", str(table), *words])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception) == message


def test_demo_data_have_no_dialect(table: Path) -> None:
    done = CliRunner().invoke(app, ["simulate", "--task", "ratings", "--dates", "dmy"])
    assert str(done.exception) == "--dates needs your own data; name them with --data"
    with pytest.raises(ConfigError, match="--column user: write NAME=TITLE"):
        ClientSettings.from_node({"columns": "user"}, "x")
