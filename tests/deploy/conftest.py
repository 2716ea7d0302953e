"""Simulated run folders, and configurations of the toy federation."""

from collections.abc import Callable
from pathlib import Path

import pytest

from common.config.run import RunConfig
from common.options import Scalar
from tests.support.partitions import write_workplace
from tests.support.run_folders import MakeRun, make_forecasts, make_run
from tests.support.toys import CATALOGUE, configured


@pytest.fixture(scope="session")
def fake_forecasts(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Return `make_forecasts`; each run is in a new folder."""
    return lambda run_id="r1", **options: make_forecasts(tmp_path_factory.mktemp("runs"), run_id, **options)


@pytest.fixture(scope="session")
def fake_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Return `make_run`; each run is in a new folder."""
    return lambda run_id="r1", **options: make_run(tmp_path_factory.mktemp("runs"), run_id, **options)


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., RunConfig]:
    """Return a maker of configurations of quick runs under the toy vocabulary."""
    path = tmp_path / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")

    def make(method: str = "fedrule", **options: Scalar) -> RunConfig:
        quick = {"rounds": 3, "federation__wait": 0.1, "federation__min_clients": 1, "catalogue": str(path)}
        return configured(method, **{**quick, **options})  # type: ignore[arg-type]

    return make


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working directory; runs are stored below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path / "runs"))
    return tmp_path


@pytest.fixture
def workplace(here: Path) -> None:
    """Write eight people's ratings, a policy that limits ε, and the vocabulary."""
    write_workplace()
