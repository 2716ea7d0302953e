"""Packages with a broken task or method: a clear error that names the package, and everything else works."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from client.data.read import read_all
from client.owner.policy import Policy
from client.tasks.registry import CLIENT_TASKS
from client.tasks.rules.learner import RulesLearner
from common.config.parse import option_keys, parse, read_names, to_json
from common.errors import ConfigError, DataError, QuorumError, RefusedError, RunError
from common.methods.registry import METHODS
from common.options import Scalar
from common.registry import Registry
from common.tasks.registry import TASKS
from common.tasks.spec import TaskSpec
from deploy.simulation.grid import simulate
from server.record.result import Result
from tests.support.plugins import install, method_of, misshapen, not_a_number, task_of, with_further_keys

RUN: dict[str, Scalar] = {"rounds": 2, "federation.min-clients": 1, "federation.wait": 0.1, "run-id": "r"}


def trained(folder: Path, clients: int = 3, **flat: Scalar) -> Result:
    config = parse({**RUN, **flat})
    return simulate(config, read_all(config.task, "demo:0-12"), folder, clients=clients)


def test_tasks_and_methods_of_packages_train_like_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = trained(tmp_path / "ours", method="fedavg")
    install(monkeypatch, {**method_of(None), **task_of(RulesLearner)})
    assert list(TASKS)[-1] == "cottages"
    assert parse({"method": "odd", "training.lr": 0.2}).method_options.lr == 0.2
    assert "tasks.cottages.hidden" in option_keys()
    assert trained(tmp_path / "method", method="odd").model_sha256 == ours.model_sha256
    theirs = trained(tmp_path / "task", method="odd", task="cottages", **{"tasks.cottages.hidden": 16})
    assert theirs.status == "completed"
    assert theirs.metrics


BROKEN: dict[str, tuple[Mapping[str, object], str]] = {
    "raises on import": ({"weather": "no_such_package:TASK"}, r"cannot be imported \(ModuleNotFoundError"),
    "lacks the object": ({"weather": "common.tasks.rules.task:NOTHING"}, r"cannot be imported \(AttributeError"),
    "registers a text": (
        {"weather": "common.tasks.registry:FIRST_TASK"},
        "is a str, not a TaskSpec; correct or uninstall the package",
    ),
    "another name": ({"weather": "common.tasks.rules.task:TASK"}, "is named 'rules'"),
    "no usable name": ({"Weather!": "common.tasks.rules.task:TASK"}, "is named 'rules'"),
}


@pytest.mark.parametrize(("points", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_package_is_named_when_it_is_asked_for_and_only_then(
    points: Mapping[str, object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, {"fedloom.tasks": points})
    [name] = points
    assert name in TASKS
    with pytest.raises(ConfigError, match=f"task '{name}' of .*{message}"):
        TASKS[name]
    with pytest.raises(ConfigError, match=message):
        parse({"task": name})
    assert trained(tmp_path, method="fedavg").status == "completed"


def test_a_built_in_name_is_not_shadowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"task 'rules' is provided by fedloom and by .*; uninstall one"):
        install(monkeypatch, {"fedloom.tasks": {"rules": "common.tasks.rules.task:TASK"}})


def test_a_name_that_two_packages_provide_is_refused_at_the_first_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    points = [EntryPoint("weather", f"package_{k}:TASK", "fedloom.tasks") for k in range(2)]
    monkeypatch.setattr("common.registry.entry_points", lambda group: points)
    registry: Registry[Any] = Registry("task", "fedloom.tasks", TaskSpec, {})
    with pytest.raises(ConfigError, match=r"provided by package_0:TASK and by package_1:TASK"):
        list(registry)


@pytest.mark.parametrize("change", [not_a_number, misshapen])
def test_replies_of_a_method_that_are_no_update_are_left_out(
    change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, method_of(change))
    with pytest.raises((QuorumError, RunError), match="0 usable replies, 1 needed"):
        trained(tmp_path, method="odd")
    assert trained(tmp_path / "other", method="fedavg").status == "completed"


def test_a_million_further_keys_do_not_leave_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = trained(tmp_path / "ours", clients=1, method="fedavg")
    install(monkeypatch, method_of(with_further_keys))
    theirs = trained(tmp_path / "theirs", clients=1, method="odd")
    assert (theirs.model_sha256, theirs.bytes_up) == (ours.model_sha256, ours.bytes_up)


@pytest.mark.parametrize("error", [DataError("no rule"), ValueError("a bug")])
def test_a_learner_that_raises_is_that_client_s_refusal(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learner(run: Any, dataset: Any) -> RulesLearner:
        if any(unit.name == "home-00000" for unit in dataset.units):
            raise error
        return RulesLearner(run, dataset)

    install(monkeypatch, task_of(learner))
    result = trained(tmp_path, method="fedavg", task="cottages")
    assert (result.status, len(result.clients)) == ("completed", 2)


def test_a_server_cannot_make_a_client_import_what_its_policy_forbids(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"fedloom.tasks": {"weather": "no_such_package:TASK"}})
    text = to_json(parse({})).replace('"task": "rules"', '"task": "weather"')
    with pytest.raises(RefusedError, match="does not allow task 'weather'"):
        Policy(tasks=("rules",)).check_names(*read_names(text))
    with pytest.raises(RefusedError, match="'snow' is not installed on this client"):
        Policy().check_names("snow", "fedavg", "fedavg")


def test_an_unknown_name_is_answered_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, task_of(RulesLearner))
    with pytest.raises(
        ConfigError, match=r"unknown task 'cotages'; did you mean 'cottages'\? installed: cottages, markets"
    ):
        parse({"task": "cotages", "tasks.cotages.lags": 3})
    assert "cottages" in CLIENT_TASKS
    assert METHODS.origin("fedavg") == "fedloom"
