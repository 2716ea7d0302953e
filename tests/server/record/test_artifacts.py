"""The run's folder: every file is readable again, and a crash costs one file at most."""

import json
import math
import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.arrays import Arrays
from common.errors import ConfigError, StateError
from server.record.events import Finish, RoundEvent, Start
from server.record.folder import RunDirectory, make_run_id

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
    rest = {"seconds": 0.5, "answered": 3, "asked": 4, "bytes_down": 10, "bytes_up": 20}
    round_ = RoundEvent(
        round=1, rounds=2, loss=0.25, metrics={"auc": 0.9}, missing=["c3"], refused={"c2": "why"}, **rest
    )  # type: ignore[arg-type]
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
