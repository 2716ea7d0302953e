"""The run's folder: what is written can be read, and a crash in the middle costs one file at most."""

import json
import logging
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from common.arrays import Arrays, sha256
from common.errors import ConfigError, StateError
from server.artifacts import Checkpoint, RunDirectory, new_run_id
from server.events import Finish, Round, Start

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


def checkpoint(round_: int, **state: Any) -> Checkpoint:
    groups = {"model": MODEL, "controls": {}, "moments": {"bias": np.array([1.0 * round_])}}
    return Checkpoint(round_, 5, groups, state)


def names(run: RunDirectory) -> list[str]:
    return sorted(path.name for path in (run.path / "checkpoints").iterdir())


def test_run_id() -> None:
    assert (
        new_run_id("fedrule", "rules", datetime(2026, 11, 20, 14, 25, 1), "ab12")
        == "20261120-142501-fedrule-rules-ab12"
    )


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 101])
def test_a_run_id_is_a_folder_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="run id"):
        RunDirectory(tmp_path, name)


def test_config_and_catalogue_can_be_read_by_anyone(run: RunDirectory) -> None:
    assert run.config() == {"method": "fedrule", "federation": {"min-replies": 2}}
    assert json.loads((run.path / "catalogue.json").read_text("utf-8")) == {"entities": ["Türsensor"]}


def test_a_run_is_not_overwritten(run: RunDirectory) -> None:
    with pytest.raises(ConfigError, match="--resume r1"):
        run.create({}, {})


def test_an_unknown_run_names_those_there_are(run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no run 'r2' .* there are r1"):
        RunDirectory(tmp_path, "r2").config()


def test_events_come_back_as_they_went(run: RunDirectory) -> None:
    start = Start(run="r1", method="fedrule", task="rules", model="paper", seed=3, rounds=2, time=1.5)
    rest = {"seconds": 0.5, "answered": 3, "asked": 4, "bytes_down": 10, "bytes_up": 20}
    round_ = Round(round=1, rounds=2, loss=0.25, metrics={"auc": 0.9}, missing=["c3"], refused={"c2": "why"}, **rest)  # type: ignore[arg-type]
    finish = Finish(status="failed", reason="too few")
    assert list(run.events()) == []
    for event in (start, round_, finish):
        run.append(event)
    assert list(run.events()) == [start, round_, finish]
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["start", "round", "finish"]
    assert json.loads(lines[1])["refused"] == {"c2": "why"}


def test_a_loss_that_is_no_number_stays_valid_json(run: RunDirectory) -> None:
    run.append(Round(round=1, rounds=2, loss=math.nan, seconds=0, answered=0, asked=0, bytes_down=0, bytes_up=0))
    assert b'"loss":null' in (run.path / "metrics.jsonl").read_bytes()
    (event,) = run.events()
    assert isinstance(event, Round)
    assert math.isnan(event.loss)


def test_a_torn_line_costs_itself_only(run: RunDirectory) -> None:
    run.append(Finish(status="completed", time=1.0))
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"event":"round","ro')
    run.append(Finish(status="failed", time=2.0))
    assert list(run.events()) == [Finish(status="completed", time=1.0), Finish(status="failed", time=2.0)]


def test_checkpoint_round_trip(run: RunDirectory) -> None:
    before = {name: a.copy() for name, a in MODEL.items()}
    run.save_checkpoint(checkpoint(12, best={"round": 9, "auc": 0.5}, note="ü"), best_round=12)
    assert names(run) == ["round-000012.safetensors"]
    loaded = run.load_latest()
    assert loaded is not None
    assert (loaded.round, loaded.seed, loaded.state) == (12, 5, {"best": {"round": 9, "auc": 0.5}, "note": "ü"})
    assert list(loaded.groups) == ["model", "controls", "moments"]
    for name, a in loaded.groups["model"].items():
        np.testing.assert_array_equal(a, before[name])
        assert (a.dtype, a.shape) == (before[name].dtype, before[name].shape)


def test_the_newest_two_and_the_best_stay(run: RunDirectory) -> None:
    for round_ in range(1, 6):
        run.save_checkpoint(checkpoint(round_), best_round=min(round_, 2))
    assert names(run) == [f"round-{r:06d}.safetensors" for r in (2, 4, 5)]


@pytest.mark.parametrize("damage", ["truncated", "altered", "empty"])
def test_a_damaged_checkpoint_is_skipped_with_a_warning(
    run: RunDirectory, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    run.save_checkpoint(checkpoint(1), 1)
    run.save_checkpoint(checkpoint(2), 1)
    newest = run.path / "checkpoints" / "round-000002.safetensors"
    content = newest.read_bytes()
    altered = content[:-1] + bytes([content[-1] ^ 1])
    newest.write_bytes({"truncated": content[:-20], "altered": altered, "empty": b""}[damage])
    with caplog.at_level(logging.WARNING):
        loaded = run.load_latest()
    assert loaded is not None
    assert loaded.round == 1
    assert "round-000002" in caplog.text


def test_resume_without_any_readable_checkpoint(run: RunDirectory) -> None:
    assert run.load_latest() is None
    (run.path / "checkpoints" / "round-000001.safetensors").write_bytes(b"nonsense")
    with pytest.raises(StateError, match="without --resume"):
        run.load_latest()


def test_model_and_its_header(run: RunDirectory) -> None:
    run.save_model(MODEL, {"method": "fedrule", "round": "3"})
    arrays, about = run.load_model()
    assert about == {"method": "fedrule", "round": "3"}
    assert arrays.keys() == MODEL.keys()
    np.testing.assert_array_equal(arrays["encoder/weight"], MODEL["encoder/weight"])


def test_a_missing_model_is_said_so(run: RunDirectory) -> None:
    with pytest.raises(StateError, match=r"model\.safetensors"):
        run.load_model()


def test_checkpoints_name_their_model(run: RunDirectory) -> None:
    run.save_checkpoint(checkpoint(1), 1)
    with safe_open(run.path / "checkpoints" / "round-000001.safetensors", framework="numpy") as file:
        assert json.loads(file.metadata()["model_sha256"]) == sha256(MODEL)
