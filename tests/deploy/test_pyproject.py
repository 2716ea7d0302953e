"""Configuration keys that pyproject.toml declares to Flower."""

import tomllib
from pathlib import Path
from typing import Any

from flwr.common.config import flatten_dict

from common.config.parse import flatten
from common.config.run import RunConfig

DELIBERATELY_ABSENT = {"run-id", "resume"}  # belong to one run: `flwr run` makes a new run each time


def test_pyproject_declares_every_option_of_flwr_run_with_its_default() -> None:
    """Defaults belong to the pydantic model; Flower accepts only keys that pyproject.toml declares."""
    pyproject: dict[str, Any] = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    declared = flatten_dict(pyproject["tool"]["flwr"]["app"]["config"])
    defaults = flatten(RunConfig())
    assert declared == {key: value for key, value in defaults.items() if key not in DELIBERATELY_ABSENT}
    assert {key: type(value) for key, value in declared.items()} == {key: type(defaults[key]) for key in declared}
