"""Folder of a run: its files are written whole, read back, and refused by name if they are damaged."""

import json
import logging
import math
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from common.arrays import Arrays, sha256
from common.errors import ConfigError, DataError, StateError
from common.options import Scalar
from deploy.simulation.grid import InProcessGrid
from server.record import folder as result_file
from server.record import folder as tensor_file
from server.record.events import Finish, RoundEvent, Start
from server.record.folder import Checkpoint, Checkpoints, RunDirectory, dump_tensors, load_tensors, make_run_id
from server.record.result import ClientResult, Result
from server.run import run as serve
from tests.support.hubs import settings as settings_of
from tests.support.owners import owners
from tests.support.sensors import rounds_of

MODEL: Arrays = {
    "encoder/weight": np.arange(6, dtype=np.float32).reshape(2, 3).T,  # not contiguous
    "bias": np.float64(3.5) * np.ones(()),  # no dimension
    "steps": np.array([7], np.int64),
}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path, "r1")
    run.create({"method": "fedrule", "federation": {"min-replies": 2}}, {"entities": ["Türsensor"]})
    return run


def test_run_id() -> None:
    assert re.fullmatch(r"20\d{6}-\d{6}-fedrule-rules-[0-9a-f]{4}", make_run_id("fedrule", "rules"))


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 101])
def test_a_run_id_is_a_folder_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="invalid run id"):
        RunDirectory(tmp_path, name)


def test_config_and_catalogue_are_readable_files(run: RunDirectory) -> None:
    assert run.config() == {"method": "fedrule", "federation": {"min-replies": 2}}
    assert json.loads((run.path / "catalogue.json").read_text("utf-8")) == {"entities": ["Türsensor"]}


def test_a_run_is_not_overwritten(run: RunDirectory) -> None:
    with pytest.raises(ConfigError, match="--resume r1"):
        run.create({}, {})


def test_a_resumed_run_removes_drafts_of_a_killed_server(run: RunDirectory) -> None:
    drafts = [run.path / ".model.safetensors.9.tmp", run.checkpoints.path / ".round-000002.safetensors.9.tmp"]
    for draft in drafts:
        draft.write_bytes(b"torn")
    run.resume(run.config())
    assert not any(draft.exists() for draft in drafts)
    assert run.config()


def test_an_unknown_run_names_the_newest_runs(run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no run 'r2' .* newest runs: r1"):
        RunDirectory(tmp_path, "r2").config()


def test_events_are_read_as_written(run: RunDirectory) -> None:
    start = Start(run="r1", method="fedrule", task="rules", model="paper", seed=3, rounds=2, time=1.5)
    round_ = RoundEvent(round=1, rounds=2, loss=0.25, seconds=0.5, answered=3, asked=4, bytes_down=10, bytes_up=20)
    round_ = replace(round_, metrics={"auc": 0.9}, missing=["c3"], refused={"c2": "why"})
    finish = Finish(status="failed", reason="too few")
    assert list(run.events()) == []
    for event in (start, round_, finish):
        run.append(event)
    assert list(run.events()) == [start, round_, finish]
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["start", "round", "finish"]
    assert json.loads(lines[1])["refused"] == {"c2": "why"}


def test_a_loss_of_nan_stays_valid_json(run: RunDirectory) -> None:
    run.append(RoundEvent(round=1, rounds=2, loss=math.nan, seconds=0, answered=0, asked=0, bytes_down=0, bytes_up=0))
    assert b'"loss":null' in (run.path / "metrics.jsonl").read_bytes()
    (event,) = run.events()
    assert isinstance(event, RoundEvent)
    assert math.isnan(event.loss)


def test_a_torn_line_loses_no_other_line(run: RunDirectory) -> None:
    run.append(Finish(status="completed", time=1.0))
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"event":"round","ro')
    run.append(Finish(status="failed", time=2.0))
    assert list(run.events()) == [Finish(status="completed", time=1.0), Finish(status="failed", time=2.0)]


def test_model_and_its_header(run: RunDirectory) -> None:
    run.save_model(MODEL, {"method": "fedrule", "round": "3"})
    arrays, about = run.load_model()
    assert about == {"method": "fedrule", "round": "3"}
    assert arrays.keys() == MODEL.keys()
    np.testing.assert_array_equal(arrays["encoder/weight"], MODEL["encoder/weight"])


def test_a_missing_model_is_an_error_with_its_path(run: RunDirectory) -> None:
    with pytest.raises(StateError, match=r"model\.safetensors"):
        run.load_model()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 400), st.binary(max_size=12), st.integers(0, 40))
def test_a_damaged_configuration_or_vocabulary_is_a_configuration_error(place: int, inserted: bytes, cut: int) -> None:
    with TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder), "r1")
        run.create({"method": "fedrule", "federation": {"min-replies": 2}}, {"entities": ["Türsensor"]})
        for name, read in (("config.toml", run.config), ("catalogue.json", run.catalogue)):
            path = run.path / name
            content = path.read_bytes()
            path.write_bytes(content[:place] + inserted + content[place + cut :])
            with suppress(ConfigError):
                read()


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path, tmp_path / "clients")


def checkpoint(round_: int, **state: Any) -> Checkpoint:
    groups = {"model": MODEL, "controls": {}, "moments": {"bias": np.array([1.0 * round_])}}
    return Checkpoint(round_, 5, groups, state)


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(path.name for path in checkpoints.path.iterdir())


def test_checkpoint_round_trip(checkpoints: Checkpoints) -> None:
    before = {name: a.copy() for name, a in MODEL.items()}
    checkpoints.save(checkpoint(12, best={"round": 9, "auc": 0.5}, note="ü"), best_round=12)
    assert names(checkpoints) == ["round-000012.safetensors"]
    loaded = checkpoints.load_latest()
    assert loaded is not None
    assert (loaded.round, loaded.seed, loaded.state) == (12, 5, {"best": {"round": 9, "auc": 0.5}, "note": "ü"})
    assert list(loaded.groups) == ["model", "controls", "moments"]
    for name, a in loaded.groups["model"].items():
        np.testing.assert_array_equal(a, before[name])
        assert (a.dtype, a.shape) == (before[name].dtype, before[name].shape)


def test_the_newest_two_the_best_and_evenly_spaced_ones_stay(checkpoints: Checkpoints) -> None:
    for round_ in range(1, 19):
        checkpoints.save(checkpoint(round_), best_round=min(round_, 3))
    assert names(checkpoints) == [f"round-{r:06d}.safetensors" for r in (3, 4, 8, 12, 16, 17, 18)]


@pytest.mark.parametrize("damage", ["truncated", "altered", "empty"])
def test_a_damaged_checkpoint_is_skipped_with_a_warning(
    checkpoints: Checkpoints, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints.save(checkpoint(1), 1)
    checkpoints.save(checkpoint(2), 1)
    newest = checkpoints.path / "round-000002.safetensors"
    content = newest.read_bytes()
    altered = content[:-1] + bytes([content[-1] ^ 1])
    newest.write_bytes({"truncated": content[:-20], "altered": altered, "empty": b""}[damage])
    with caplog.at_level(logging.WARNING):
        loaded = checkpoints.load_latest()
    assert loaded is not None
    assert loaded.round == 1
    assert "round-000002" in caplog.text


def test_resume_without_any_readable_checkpoint(checkpoints: Checkpoints) -> None:
    assert checkpoints.load_latest() is None
    (checkpoints.path / "round-000001.safetensors").write_bytes(b"nonsense")
    with pytest.raises(StateError, match="without --resume"):
        checkpoints.load_latest()


def test_checkpoints_name_their_model(checkpoints: Checkpoints) -> None:
    checkpoints.save(checkpoint(1), 1)
    with safe_open(checkpoints.path / "round-000001.safetensors", framework="numpy") as file:
        assert json.loads(file.metadata()["model_sha256"]) == sha256(MODEL)


def test_round_trip_leaves_its_arguments_unchanged(tmp_path: Path) -> None:
    arrays = {"a/b": np.arange(6.0).reshape(2, 3).T, "n": np.array(7)}
    (tmp_path / "x").write_bytes(dump_tensors(arrays, {"round": "3"}))
    loaded, about = load_tensors(tmp_path / "x")
    assert about == {"round": "3"}
    np.testing.assert_array_equal(loaded["a/b"], [[0, 3], [1, 4], [2, 5]])
    assert loaded["n"].shape == ()
    assert not arrays["a/b"].flags.c_contiguous


def test_a_file_of_another_program_has_no_fingerprint(tmp_path: Path) -> None:
    save_file({"a": np.zeros(2)}, tmp_path / "x")
    with pytest.raises(StateError, match="damaged"):
        load_tensors(tmp_path / "x")


def finished(folder: Path, clients: int = 5, **options: Scalar) -> Result:
    folder.mkdir(exist_ok=True)
    config = settings_of(folder, "fedavg", **{"rounds": 2, "evaluate_every": 1, **options})
    return serve(InProcessGrid(owners(clients).sessions, 1), config, folder)


def test_results_of_many_clients_stand_in_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = finished(tmp_path / "few")
    assert not (tmp_path / "few" / "toy" / result_file.CLIENTS).exists()
    monkeypatch.setattr(result_file, "MANY", 4)
    many = finished(tmp_path / "many")
    stored = RunDirectory(tmp_path / "many", "toy").result()
    assert stored is not None
    assert [*stored.clients] == [*many.clients] == [*few.clients]
    for name, one in many.clients.items():
        assert stored.clients[name].examples == one.examples
        assert stored.clients[name].metrics == pytest.approx(one.metrics, rel=1e-6)
    assert replace(stored, clients={}, spread={}) == replace(many, clients={}, spread={})
    document = json.loads((tmp_path / "many" / "toy" / "result.json").read_text("utf-8"))
    assert document["clients"] == {}
    losses = [one.metrics["loss"] for one in many.clients.values()]
    assert document["spread"]["loss"]["p50"] == pytest.approx(np.median(losses), rel=1e-6)
    assert document["spread"]["examples"]["max"] == max(one.examples for one in many.clients.values())


def test_a_client_without_a_metric_keeps_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_file, "MANY", 1)
    result = finished(tmp_path)
    clients = {"a": ClientResult(examples=3, metrics={"loss": 0.5}), "b": ClientResult(examples=0, metrics={})}
    folder = RunDirectory(tmp_path, "toy")
    folder.write_result(replace(result, clients=clients))
    stored = folder.result()
    assert stored is not None
    assert stored.clients == clients


def test_a_missing_or_damaged_table_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_file, "MANY", 4)
    finished(tmp_path)
    directory, table = RunDirectory(tmp_path, "toy"), tmp_path / "toy" / result_file.CLIENTS
    content = table.read_bytes()
    table.write_bytes(content[:-3])
    with pytest.raises(StateError, match=r"clients\.safetensors cannot be read"):
        directory.result()
    table.write_bytes(tensor_file.dump_tensors({"other": np.zeros(1)}, {}))
    with pytest.raises(DataError, match=r"clients\.safetensors is no table of clients"):
        directory.result()
    table.unlink()
    with pytest.raises(StateError, match=r"clients\.safetensors cannot be read"):
        directory.result()


def test_a_share_of_the_clients_measures_and_all_measure_the_final_model(tmp_path: Path) -> None:
    result = finished(tmp_path, 6, rounds=4, federation__evaluate_share=0.5)
    whole = finished(tmp_path / "whole", 6, rounds=4)
    assert result.model_sha256 == whole.model_sha256
    assert all(one.metrics for one in result.clients.values())
    assert result.metrics == whole.metrics
    drawn, all_ = ([event.metrics["loss"] for event in rounds_of(path)] for path in (tmp_path, tmp_path / "whole"))
    assert drawn[-1] == all_[-1]
    assert all(a != b for a, b in zip(drawn[:-1], all_[:-1], strict=True))
