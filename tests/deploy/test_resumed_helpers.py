"""Helpers of a simulation keep their books in the run's folder until the run is complete."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from client.data.dataset import AnyDataset, Dataset
from common.config.run import RunConfig
from deploy.simulation.state import HELPERS, KeptState, simulate_measured
from server.record.folder import RunDirectory
from server.record.journal import Journal
from server.record.result import Result
from tests.support.kills import killed_at
from tests.support.sum_runs import MIN_SUM
from tests.support.toys import CATALOGUE, toy_homes


class PowerFailureError(Exception):
    """Interruption of a run."""


@pytest.fixture
def config(settings: Callable[..., RunConfig]) -> RunConfig:
    """Return a configuration of three rounds with sums."""
    return settings("fedavg", **{"privacy__trust": "helpers", "secure-sums__min-sum": MIN_SUM})


def simulated(config: RunConfig, runs: Path, state: KeptState | None = None) -> Result:
    parts: Sequence[AnyDataset] = [Dataset((home,), CATALOGUE) for home in toy_homes(4)]
    return simulate_measured(config, parts, runs, state=state or KeptState())[0]


def test_an_interrupted_simulation_goes_on_with_its_helpers(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = simulated(config, tmp_path / "whole")

    def fail(journal: Journal, *arguments: Any) -> None:
        raise PowerFailureError

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record_evaluation", fail)
        with pytest.raises(PowerFailureError):
            simulated(config, tmp_path / "resumed")
    books = RunDirectory(tmp_path / "resumed", "toy").path / HELPERS
    assert sorted(path.name for path in books.iterdir()) == ["helper-1", "helper-2"]
    result = simulated(config.model_copy(update={"resume": True}), tmp_path / "resumed")
    assert result.model_sha256 == through.model_sha256
    assert result.privacy.helpers.keys() == {"helper-1", "helper-2"}
    assert not books.exists()


@pytest.mark.parametrize("unit", ["none", "client"])
def test_helpers_open_sums_again_after_a_kill_at_any_step(unit: str, config: RunConfig, tmp_path: Path) -> None:
    """Clients mask a repeated round anew; with noise, they send the same bytes again."""
    noise = config.privacy.model_copy(update={"unit": unit, "epsilon": 8.0})
    config = config.model_copy(update={"privacy": noise})
    parts: Sequence[AnyDataset] = [Dataset((home,), CATALOGUE) for home in toy_homes(4)]

    def seeded(runs: Path, *, resume: bool = False) -> Result:
        return simulate_measured(config.model_copy(update={"resume": resume}), parts, runs, noise_seed=7)[0]

    with killed_at() as steps:
        through = seeded(tmp_path / "whole")
    begun, finish = steps.names.index("commit"), len(steps.names) - steps.names[::-1].index("append")
    for last in (finish - 1, *random.Random(unit).sample(range(begun, finish - 1), 3)):
        runs = tmp_path / str(last)
        with killed_at(last):
            seeded(runs)
        resumed = seeded(runs, resume=True)
        place = f"killed before {steps.names[last - 1]}, step {last}"
        assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256), place
