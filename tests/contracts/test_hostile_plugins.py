"""Packages with a broken task or method: a clear error that names the package, and everything else works."""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import Field

from client.data.read import read_all
from client.owner.policy import Policy
from client.tasks.learner import Learner
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.tasks.rules.learner import RulesLearner
from client.tasks.rules.task import TASK as RULES
from common.config.parse import option_keys, parse, read_names, to_json
from common.errors import ConfigError, DataError, PackageError, QuorumError, RefusedError, RunError, public_reason
from common.methods.base import MethodOptions, MethodSpec
from common.methods.registry import METHODS
from common.options import Scalar
from common.registry import Registry, naming_packages
from common.tasks.registry import TASKS
from common.tasks.spec import TaskSpec
from deploy.simulation.grid import simulate
from server.methods.registry import SERVER_METHODS
from server.record.result import Result
from tests.support.plugins import OddStep, install, method_of, misshapen, not_a_number, task_of, with_further_keys

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


def test_replies_of_a_method_that_are_no_update_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, method_of(not_a_number))
    with pytest.raises((QuorumError, RunError), match="0 usable replies, 1 needed"):
        trained(tmp_path, method="odd")
    assert trained(tmp_path / "other", method="fedavg").status == "completed"


STEPS: dict[str, Any] = {
    "the model alone": lambda model: model,
    "another dtype": lambda model: ({name: array.astype(np.float64) for name, array in model.items()}, {}),
    "a state of objects": lambda model: (model, {"velocity": {"x": np.array([{}])}}),
    "NaN": lambda model: ({name: array * np.float32(np.nan) for name, array in model.items()}, {}),
    "an upload of another shape": lambda model: (model, {}),
}


@pytest.mark.parametrize("fault", STEPS)
def test_a_method_that_breaks_the_contract_ends_the_run_with_one_error(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OddStep, "update", lambda self, at, state, model, total: STEPS[fault](model))
    install(monkeypatch, method_of(misshapen if "upload" in fault else None))
    with pytest.raises(PackageError, match=r"a_package.*; correct or uninstall the package"):
        trained(tmp_path, method="odd")
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert (result["status"], result["error"], "a_package" in result["reason"]) == ("failed", "PackageError", True)


def test_an_error_of_a_package_names_its_line_here_and_its_class_alone_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "steps-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: steps\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fedloom.methods]\nsteps = steps_of_others:SPEC\n")
    (tmp_path / "steps_of_others.py").write_text("def step():\n    raise KeyError('home-00001')\n")
    monkeypatch.syspath_prepend(tmp_path)
    here = r"^steps 1.0: KeyError: 'home-00001' \(steps_of_others, line 2\); correct"
    with pytest.raises(PackageError, match=here) as raised, naming_packages():
        import_module("steps_of_others").step()
    assert public_reason(raised.value) == "steps 1.0: KeyError; see the client's log"
    with pytest.raises(KeyError), naming_packages():
        {}["an error of ours"]


def test_an_option_without_a_valid_default_is_refused_when_the_package_is_loaded() -> None:
    class Unset(MethodOptions):
        name: ClassVar[str] = "unset"
        beta: float = Field(-1.0, ge=0)

    with pytest.raises(ValueError, match="wrong default of option beta: Input should be greater than or equal to 0"):
        MethodSpec(Unset, "Unset")


def test_a_learner_without_a_member_of_the_protocol_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    members = {name for name in vars(Learner) if not name.startswith("_")}
    config = parse(RUN)
    for name in sorted(members):
        learner = SimpleNamespace(**dict.fromkeys(members - {name}))
        install(monkeypatch, task_of(lambda run, data, learner=learner: learner))
        with pytest.raises(PackageError, match=f"a_package.*: its learner lacks {name} "):
            build_learner(config.model_copy(update={"task": "cottages"}), read_all("rules", "demo:0-1"))


DATA: dict[str, tuple[Any, str]] = {
    "nothing": (lambda data: None, "a NoneType is no Dataset"),
    "units of one name": (lambda data: replace(data, units=data.units[:1] * 2), "two homes have the name 'home-00000'"),
    "no vocabulary": (lambda data: replace(data, vocabulary=None), "a NoneType is no RuleCatalogue"),
    "no unit": (lambda data: replace(data, units=()), "no home is in the data"),
}


@pytest.mark.parametrize(("change", "message"), DATA.values(), ids=DATA.keys())
def test_a_reader_that_breaks_the_contract_is_named(change: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points = task_of(RulesLearner)
    spec = points["fedloom.tasks"]["cottages"]
    changed = replace(RULES, spec=spec, generate=None, read=lambda source, *_: change(read_all("rules", source.text)))
    points["fedloom.tasks.client"]["cottages"] = changed
    install(monkeypatch, points)
    with pytest.raises((PackageError, DataError), match=message):
        read_all("cottages", "demo:0-3")


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
    install(monkeypatch, {"fedloom.methods": method_of(None)["fedloom.methods"]})
    with pytest.raises(ConfigError, match=r"method .odd. of .* has no entry point in the group fedloom.methods.server"):
        SERVER_METHODS["odd"]
    assert METHODS.origin("fedavg") == "fedloom"
