"""Checkpoints and files of tensors: a round trip, retention, and damage."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from common.arrays import sha256
from common.errors import StateError
from server.record.folder import Checkpoint, Checkpoints, dump_tensors, load_tensors
from tests.server.record.test_artifacts import MODEL


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
