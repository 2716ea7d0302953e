"""Safetensors files with a fingerprint; damage is tested with the checkpoints."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from common.errors import StateError
from server.record.folder import dump_tensors, load_tensors


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
