"""Configuration of a run from a command's options: defaults of a task, and noise."""

from pathlib import Path

import pytest

from common.config.run import RunConfig
from common.errors import ConfigError
from common.tasks.registry import TASKS
from deploy.cli.options import RunRequest
from deploy.commands.request import resolve
from deploy.commands.tasks import describe


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path))


def resolved(
    method: str = "", sets: list[str] | None = None, epsilon: float | None = None, delta: float | None = None
) -> RunConfig:
    return resolve(RunRequest(method, "markets", sets=sets, epsilon=epsilon, delta=delta), {})


def test_markets_get_the_scorer_and_others_counts_under_noise() -> None:
    config = resolved()
    assert (config.method, config.model, config.rounds) == ("fedavg", "default", 20)
    assert config.task_options.count_offset
    assert (config.task_options.count_privacy.unit, config.task_options.count_privacy.epsilon) == ("record", 8.0)
    assert resolved(sets=["tasks.markets.count-epsilon=2.0"]).task_options.count_privacy.epsilon == 2.0


def test_counts_do_not_go_beside_noise_on_all_that_leaves() -> None:
    config = resolved(epsilon=4.0)
    assert config.privacy.unit == "client"
    assert not config.task_options.count_offset


def test_a_method_that_is_named_comes_as_it_is() -> None:
    assert not resolved("pfgnn").task_options.count_offset
    assert resolved("pfgnn").method == "pfgnn"


@pytest.mark.parametrize(
    ("sets", "delta", "name"),
    [
        (None, 1e-6, "--delta"),
        (["privacy.epsilon=2"], None, "--set privacy.epsilon"),
        (["privacy.clip=2"], None, "clip"),
    ],
)
def test_who_speaks_of_noise_does_not_train_without_any(sets: list[str] | None, delta: float | None, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} needs --epsilon; this run adds no noise"):
        resolved("fedavg", sets, delta=delta)
    config = resolved("fedavg", [*(sets or []), "privacy.unit=client"], delta=delta)
    assert config.privacy.unit == "client"
    assert resolved("fedavg", epsilon=2.0, delta=delta).privacy.unit == "client"
    assert resolved("fedavg", ["privacy.unit=none"]).privacy.unit == "none"


def test_a_task_that_tells_no_records_apart_says_so_whatever_mechanism_it_gets_unasked() -> None:
    with pytest.raises(ConfigError, match=r"needs batches of separate records.*; set privacy\.unit=client") as caught:
        resolve(RunRequest(task="ratings", sets=["privacy.unit=record"], epsilon=3.0), {})
    assert "mechanism" not in str(caught.value)


@pytest.mark.parametrize("task", TASKS)
def test_fedloom_tasks_names_the_defaults_of_each(task: str) -> None:
    config, defaults = resolve(RunRequest(task=task), {}), describe(task)["defaults"]
    assert (config.method, config.rounds) == (defaults["method"], defaults.get("rounds", 30))
