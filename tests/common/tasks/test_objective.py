"""One objective decides on models, and its direction is that of its metric; a task that contradicts itself is refused."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.metrics import MetricSpec
from common.tasks.registry import TASKS
from common.tasks.spec import AnyTask, Objective
from server.record.folder import RunDirectory
from server.record.model_choice import ModelChoice
from tests.support.plugins import install

ROOT = Path(__file__).parents[3]
HIGHER = MetricSpec("skill", "skill", "Skill", "higher", 3, "1 is a perfect forecast.")
NEUTRAL = MetricSpec("width", "width", "Width", "", 3, "Width of a range.")


@pytest.fixture(autouse=True)
def _example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "weather-task"))


def weather(**fields: Any) -> AnyTask:
    """Return the guide's example with two more metrics."""
    from weather_task.spec import TASK

    return replace(TASK, metrics=(*TASK.metrics, HIGHER, NEUTRAL), **fields)


REFUSED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "no metric": (
        {"objective": Objective("rmse")},
        "objective 'rmse' is not one of its metrics: mse, last_mse, skill, width",
    ),
    "of a baseline": (
        {"objective": Objective("last_mse")},
        "objective 'last_mse' is of a baseline; name a metric of the model",
    ),
    "no direction": ({"objective": Objective("width")}, "objective 'width' has no better direction"),
    "other baseline": (
        {"simple": {"mse": "skill"}},
        "baseline 'skill' of the objective 'mse' is not a metric with better = lower",
    ),
    "no baseline": ({"simple": {"mse": "gone"}}, "baseline 'gone' of the objective 'mse' is not a metric"),
}


@pytest.mark.parametrize(("fields", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_task_that_contradicts_itself_is_refused(fields: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"task 'weather': the {message}"):
        weather(**fields)


def test_a_package_with_such_a_task_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"fedloom.tasks": {"weather": "tests.common.tasks.contradicting:TASK"}})
    with pytest.raises(ConfigError, match=r"task 'weather' of .*objective 'rmse' is not one of its metrics"):
        TASKS["weather"]


@pytest.mark.parametrize(("metric", "best"), [("mse", 2), ("skill", 3)])
def test_the_best_round_of_the_guides_example_follows_the_direction_of_its_metric(
    metric: str, best: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task with a metric of which higher is better needs no second word for it."""
    monkeypatch.setitem(TASKS._loaded, "rules", weather(objective=Objective(metric)))
    choice = ModelChoice(RunDirectory(tmp_path, "r1"), rules())
    for number, value in enumerate((0.3, 0.1, 0.5, 0.4), start=1):
        choice.rounds.compare(number, {metric: value}, "validation")
    assert choice.rounds.best is not None
    assert choice.rounds.best.round == best


def test_a_task_without_families_has_metrics_of_personalized_and_cluster_models() -> None:
    found = [weather(families=()).find_metric(f"{prefix}mse") for prefix in ("global_", "cluster_", "used_")]
    assert [metric and metric.better for metric in found] == ["lower"] * 3


def test_a_task_without_a_paper_has_no_model_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS._loaded, "rules", replace(TASKS["rules"], paper={}))
    with pytest.raises(ConfigError, match="task 'rules' has no model of a paper; remove --model paper"):
        parse({"method": "fedavg", "model": "paper"})


def rules() -> RunConfig:
    return parse({"task": "rules", "method": "fedavg", "run-id": "r1"})


@pytest.mark.parametrize("name", ["rules", "sessions", "traffic", "ratings", "markets"])
def test_each_task_judges_by_a_metric_that_its_baseline_has(name: str) -> None:
    spec = TASKS[name]
    found = spec.find_metric(spec.objective.metric)
    assert found is not None
    assert spec.higher_is_better == (found.better == "higher")
    assert spec.objective.metric in spec.simple


def test_homes_are_judged_by_the_list_that_they_are_shown() -> None:
    assert TASKS["rules"].objective.metric.endswith("_shown")
