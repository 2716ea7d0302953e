"""Records of runs by trackers, read back as each tool reads them."""

import asyncio
import json
import math
import os
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest
import wandb
import yaml
from mlflow.tracking import MlflowClient
from prometheus_client.parser import text_string_to_metric_families
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import masked_crc32c
from typer.testing import CliRunner

from common.errors import ConfigError
from common.privacy.accounts import parse_account
from common.refusals import METRIC
from deploy.cli.app import app
from deploy.pages import tracker
from deploy.pages.adapters import Prometheus
from deploy.pages.live import make_app
from deploy.pages.tracker import TrackedRun, choose, export, tracked
from deploy.superlink.door_thread import EXPIRES
from deploy.superlink.superlink import free_port
from server.record.events import ClientRound, Finish, RoundEvent, Start
from server.record.folder import RunDirectory
from server.record.result import result_to_json
from tests.deploy.pages.test_summary import RESULT
from tests.support.run_folders import MakeRun
from tests.support.ui import HOST, TOKEN, a_round, a_start, ask, exchange, write_run


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
    values: dict[tuple[str, int], float] = {}
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
    values = tracker.numbers(round_(3))
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
    chosen = choose([f"tensorboard={board}", f"prometheus={text}"])
    assert sum(export(folder, chosen) for folder in folders) == 10
    values = {event.round: event.metrics["auc"] for event in folders[0].events() if isinstance(event, RoundEvent)}
    read = scalars(board / "r1")
    assert {step: value for (tag, step), value in read.items() if tag == "test/auc"} == pytest.approx(values)
    assert {("options/text_summary", 0), ("result/text_summary", 0)} <= read.keys()
    newest = gauges(text)
    assert (newest["fedloom_round", "r1", ""], newest["fedloom_round", "r2", ""]) == (4.0, 6.0)
    assert newest["fedloom_round_number", "r1", "test/auc"] == pytest.approx(values[4])


def test_a_running_run_is_followed_to_its_end(fake_run: MakeRun, tmp_path: Path) -> None:
    path = fake_run("r1", rounds=2, status="running")
    folder, seen = RunDirectory(path.parent, "r1"), list[int]()

    def watch() -> None:
        seen.extend(event.round for event in tracker.rounds(folder, follow=True))

    watcher = threading.Thread(target=watch)
    watcher.start()
    folder.append(round_(3))
    (path / "result.json").write_bytes(result_to_json(RESULT))
    folder.append(Finish(status="completed"))
    watcher.join(timeout=30)
    assert seen == [1, 2, 3]


def test_the_command_names_its_output(fake_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(fake_run("r1", rounds=3).parent))
    done = CliRunner().invoke(app, ["export", "r1", "--track", f"prometheus={tmp_path / 'p.prom'}", "--json"])
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout) == {"rounds": 3, "written": [f"prometheus={tmp_path / 'p.prom'}"]}
    for words, reason in (
        ([], "no target is set"),
        (["--track", "prometheus=p", "--follow"], "--follow needs the name of a run"),
        (["--track", "prometheus"], "--track prometheus needs a file or"),
        (["--track", "prometeus=p"], "did you mean 'prometheus'?"),
    ):
        error = CliRunner().invoke(app, ["export", *words]).exception
        assert isinstance(error, ConfigError)
        assert reason in str(error)


@pytest.mark.parametrize("name", tracker.TRACKERS)
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "find_spec", lambda package: None)
    with pytest.raises(ConfigError, match=f"{name} needs (.+); install it with: pip install \\1"):
        choose([f"{name}=target"])


def test_an_interrupted_run_is_no_longer_followed(
    fake_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake_run("r1", rounds=2, status="running")
    monkeypatch.setattr(tracker, "SILENCE_SECONDS", 0.0)
    monkeypatch.setattr(tracker, "POLL_SECONDS", 0.01)
    assert [event.round for event in tracker.rounds(RunDirectory(path.parent, "r1"), follow=True)] == [1, 2]


def test_numbers_missing_in_the_newest_round_are_removed(tmp_path: Path) -> None:
    record = Prometheus(TrackedRun("r1", "fedavg", "rules", 0.0, {}), str(tmp_path / "p"))
    record.round(5, 0.0, tracker.numbers(round_(5)))
    record.round(6, 0.0, tracker.numbers(replace(round_(6), metrics={}, split="")))
    newest = gauges(tmp_path / "p")
    assert newest["fedloom_round", "r1", ""] == 6.0
    assert ("fedloom_round_number", "r1", "validation/auc") not in newest
    assert newest["fedloom_round_number", "r1", "server/arm"] == 4.0


def test_prometheus_scrapes_an_address(fake_run: MakeRun) -> None:
    port, path = free_port(), fake_run("r1", rounds=3)
    export(RunDirectory(path.parent, path.name), choose([f"prometheus=127.0.0.1:{port}"]))
    text = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    assert 'fedloom_round{method="fedrule",run="r1",task="rules"} 3.0' in text
    with pytest.raises(ConfigError, match=f"prometheus={port}: Address already in use; choose another port"):
        export(RunDirectory(path.parent, path.name), choose([f"prometheus={port}"]))


def test_mlflow_has_options_rounds_result_and_files_once(
    fake_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    path, uri = fake_run("r1", rounds=3), (tmp_path / "mlruns").as_uri()
    client = MlflowClient(tracking_uri=uri)
    experiment = client.create_experiment("fedloom", artifact_location=(tmp_path / "files").as_uri())
    for _ in range(2):  # the second goes on where the first ended
        export(RunDirectory(path.parent, path.name), choose([f"mlflow={uri}"]))
    [run] = client.search_runs([experiment])
    assert run.info.run_name == "r1"
    assert run.info.status == "FINISHED"
    assert run.data.params["method"] == "fedrule"
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "test/auc")] == [1, 2, 3]
    assert {file.path for file in client.list_artifacts(run.info.run_id)} == {"config.toml", "result.json"}
    result = RunDirectory(path.parent, path.name).result()
    assert result
    assert float(run.data.tags["final.auc"]) == pytest.approx(result.metrics["auc"], rel=1e-5)


def test_weights_and_biases_works_without_a_network(
    fake_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    path = fake_run("r1", rounds=3)
    export(RunDirectory(path.parent, path.name), choose(["wandb=shops"]))
    [log] = tmp_path.glob("wandb/offline-run-*-r1/*.wandb")
    wandb.teardown()  # its service writes the rest
    content = log.read_bytes()
    assert b"test/auc" in content
    assert b"fedrule" in content
    assert os.uname().release.encode() not in content
    assert sys.executable.encode() not in content


def test_a_tracker_that_fails_is_named_and_costs_the_run_nothing(
    fake_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path))
    monkeypatch.setattr(tracker, "POLL_SECONDS", 0.01)
    folder = RunDirectory(tmp_path, "r9")
    with tracked("r9", [f"prometheus={tmp_path / 'none' / 'p'}"]):
        folder.create({"method": "fedavg", "task": "rules"}, {})
        folder.append(Start(run="r9", method="fedavg", task="rules", model="default", seed=0, rounds=1))
        folder.append(round_(1))
    assert "not recorded by prometheus" in capsys.readouterr().err


def test_a_run_is_recorded_while_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path))
    monkeypatch.setattr(tracker, "POLL_SECONDS", 0.01)
    folder, text = RunDirectory(tmp_path, "r9"), tmp_path / "p.prom"
    with tracked("r9", [f"prometheus={text}"]):
        folder.create({"method": "fedavg", "task": "rules", "privacy.delta": 1e-5, "privacy.epsilon": 8.0}, {})
        start = Start(run="r9", method="fedavg", task="rules", model="default", seed=0, rounds=2, account="gdp")
        folder.append(start)
        spent = {"ann": ClientRound(state="online", cost=0.125), "bob": ClientRound(state="online", cost=0.25)}
        folder.append(replace(round_(1), clients=spent))
        folder.append(replace(round_(2), clients=spent))
    newest = gauges(text)
    assert newest["fedloom_round", "r9", ""] == 2.0
    assert newest["fedloom_round_number", "r9", "privacy/epsilon"] == pytest.approx(
        parse_account("gdp").claim(0.5, 1e-5)
    )


def test_the_live_page_answers_prometheus_with_its_token_only(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", [a_start("r1"), a_round(1), a_round(2)])
    assert ask(tmp_path, "/metrics", cookie=None).status == 401
    headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    answer = asyncio.run(exchange(make_app(tmp_path, TOKEN), "/metrics", headers=headers))
    assert answer.status == 200
    assert b'run="r1",task="rules"} 2.0' in answer.body


def test_dashboard_and_alerts_name_metrics_that_exist(fake_run: MakeRun, tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "deploy" / "monitoring"
    rules = yaml.safe_load((folder / "alerts.yaml").read_text())["groups"][0]["rules"]
    panels = json.loads((folder / "grafana.json").read_text())["panels"]
    texts = [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]
    named = {name for text in texts for name in re.findall(r'name=~?"([^"]+)"', text)}
    privacy = {"privacy/epsilon": 0.0, "privacy/limit": 0.0}
    known = {**tracker.numbers(replace(round_(1), loss=0.5)), **privacy}
    assert all(any(re.fullmatch(one, name) for name in known) for one in named)
    assert {metric for text in texts for metric in re.findall(r"fedloom_\w+", text)} == {
        "fedloom_round",
        "fedloom_round_number",
        EXPIRES,
        METRIC,
    }
