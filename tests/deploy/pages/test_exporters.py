"""Export of a run's rounds, read back as TensorBoard and Prometheus read them."""

import json
import math
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import masked_crc32c
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from deploy.pages import exporters
from server.record.events import Finish, RoundEvent
from server.record.folder import RunDirectory
from server.record.result import result_to_json
from tests.deploy.pages.test_summary import RESULT
from tests.support.run_folders import MakeRun


def round_(number: int) -> RoundEvent:
    return RoundEvent(
        round=number,
        rounds=9,
        loss=math.nan,
        metrics={"auc": 0.5 + number / 100},
        split="validation",
        seconds=1.5,
        answered=2,
        asked=3,
        missing=["ann"],
        bytes_down=10,
        bytes_up=20,
        server={"arm": 4.0},
    )


def scalars(folder: Path) -> dict[tuple[str, int], float]:
    """Return the content of event files: records of a length, a checksum, a message and a checksum."""
    values = {}
    for path in folder.glob("events.*"):
        content, place = path.read_bytes(), 0
        while place < len(content):
            length = int.from_bytes(content[place : place + 8], "little")
            body = content[place + 12 : place + 12 + length]
            assert masked_crc32c(body) == int.from_bytes(content[place + 12 + length : place + 16 + length], "little")
            event = Event.FromString(body)
            values |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
            place += 16 + length
    return values


def gauges(path: Path) -> dict[tuple[str, str, str], float]:
    families = text_string_to_metric_families(path.read_text())
    return {
        (sample.name, sample.labels["run"], sample.labels.get("name", "")): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_number_of_a_round_has_a_path() -> None:
    values = exporters.numbers(round_(3))
    assert values == {  # and no training loss, which a run with noise lacks
        "validation/auc": 0.53,
        "server/arm": 4.0,
        "clients/answered": 2.0,
        "clients/asked": 3.0,
        "clients/missing": 1.0,
        "clients/refused": 0.0,
        "bytes/down": 10.0,
        "bytes/up": 20.0,
        "seconds": 1.5,
    }


def test_both_tools_read_the_numbers_of_the_run(fake_run: MakeRun, tmp_path: Path) -> None:
    board, text = tmp_path / "board", tmp_path / "fedloom.prom"
    folders = [RunDirectory(path.parent, path.name) for path in (fake_run("r1", rounds=4), fake_run("r2", rounds=6))]
    assert exporters.export(folders, board, text, follow=False) == 10
    values = {event.round: event.metrics["auc"] for event in folders[0].events() if isinstance(event, RoundEvent)}
    read = scalars(board / "r1")
    assert {step: value for (tag, step), value in read.items() if tag == "test/auc"} == pytest.approx(values)
    newest = gauges(text)
    assert (newest["fedloom_round", "r1", ""], newest["fedloom_round", "r2", ""]) == (4.0, 6.0)
    assert newest["fedloom_round_number", "r1", "test/auc"] == pytest.approx(values[4])


def test_a_running_run_is_followed_to_its_end(fake_run: MakeRun, tmp_path: Path) -> None:
    path = fake_run("r1", rounds=2, status="running")
    folder, seen = RunDirectory(path.parent, "r1"), []

    def watch() -> None:
        seen.extend(event.round for event in exporters.rounds(folder, follow=True))

    watcher = threading.Thread(target=watch)
    watcher.start()
    folder.append(round_(3))
    (path / "result.json").write_bytes(result_to_json(RESULT))
    folder.append(Finish(status="completed"))
    watcher.join(timeout=30)
    assert seen == [1, 2, 3]


def test_the_command_names_its_output(fake_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(fake_run("r1", rounds=3).parent))
    done = CliRunner().invoke(app, ["export", "r1", "--prometheus", str(tmp_path / "p.prom"), "--json"])
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout) == {"rounds": 3, "written": [str(tmp_path / "p.prom")]}
    for words, reason in (
        ([], "no target is set"),
        (["--prometheus", "p", "--follow"], "--follow needs the name of a run"),
    ):
        error = CliRunner().invoke(app, ["export", *words]).exception
        assert isinstance(error, ConfigError)
        assert reason in str(error)


@pytest.mark.parametrize("module", ["tensorboardX", "prometheus_client"])
def test_a_missing_package_is_named(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ConfigError, match="install it with: pip install tensorboardX prometheus-client"):
        exporters.open_tensorboard(tmp_path / "r1") if module == "tensorboardX" else exporters.Prometheus(
            tmp_path / "p"
        )


def test_an_interrupted_run_is_no_longer_followed(
    fake_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake_run("r1", rounds=2, status="running")
    monkeypatch.setattr(exporters, "SILENCE_SECONDS", 0.0)
    monkeypatch.setattr(exporters, "POLL_SECONDS", 0.01)
    assert [event.round for event in exporters.rounds(RunDirectory(path.parent, "r1"), follow=True)] == [1, 2]


def test_numbers_missing_in_the_newest_round_are_removed(tmp_path: Path) -> None:
    text, labels = exporters.Prometheus(tmp_path / "p"), {"run": "r1", "method": "fedavg", "task": "rules"}
    text.add(labels, round_(5))
    text.add(labels, replace(round_(6), metrics={}, split=""))
    newest = gauges(tmp_path / "p")
    assert newest["fedloom_round", "r1", ""] == 6.0
    assert ("fedloom_round_number", "r1", "validation/auc") not in newest
    assert newest["fedloom_round_number", "r1", "server/arm"] == 4.0
