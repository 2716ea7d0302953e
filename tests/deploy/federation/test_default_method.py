"""Methods of runs that name none: closed forms where their sums can be had, else networks."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from client.owner.policy import Policy
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, RefusedError
from common.tasks.registry import TASKS
from deploy.cli.options import DataRequest, RunRequest
from deploy.federation.local_clients import OPEN, pin_helpers, prepare_clients, prepare_simulation
from deploy.federation.request import owners_must_allow, resolve, stop_of_up, without_effect

pytestmark = pytest.mark.usefixtures("here")

CLOSED = [task for task in TASKS if TASKS[task].closed_form]


def default(task: str, *, helpers: bool = False, **options: Any) -> RunConfig:
    return resolve(RunRequest(task=task, **options), {}, helpers=helpers)


@pytest.mark.parametrize("task", CLOSED)
def test_the_closed_form_is_the_default_and_the_network_is_named(task: str) -> None:
    assert default(task).method == "ridge"
    assert default(task).privacy.trust == "auto"
    network = TASKS[task].network
    named = default(task, method=str(network["method"]))
    assert not named.capabilities.closed_form
    assert named.rounds == network.get("rounds", 30)


@pytest.mark.parametrize("task", CLOSED)
@pytest.mark.parametrize("epsilon", [None, 8.0])
def test_a_command_with_helpers_of_its_own_sums(task: str, epsilon: float | None) -> None:
    config = default(task, helpers=True, epsilon=epsilon)
    assert (config.method, config.privacy.trust, config.privacy.mechanism) == ("ridge", "helpers", "gaussian")
    assert resolve(RunRequest(task=task, helpers=0), {}, helpers=True).privacy.trust == "local"


@pytest.mark.parametrize("task", CLOSED)
def test_clients_own_noise_trains_the_network(task: str) -> None:
    for request in (RunRequest(task=task, epsilon=8.0), RunRequest(task=task, epsilon=8.0, helpers=0)):
        config = resolve(request, {}, helpers=request.helpers is not None)
        assert config.method == TASKS[task].network["method"]
    assert resolve(RunRequest(task=task, epsilon=8.0, helpers=2), {}).method == "ridge"


def test_a_mechanism_of_clients_trains_the_network_also_beside_helpers() -> None:
    config = default("ratings", helpers=True, epsilon=8.0, sets=["privacy.mechanism=laplace"])
    assert (config.method, config.privacy.trust) == ("fedavg", "auto")


@pytest.mark.parametrize("option", ["training.lr=0.1", "model=paper"])
def test_an_option_of_training_needs_a_named_method(option: str) -> None:
    with pytest.raises(
        ConfigError, match=r"the default of task 'rules' is the closed form ridge; add --method fedrule"
    ):
        default("rules", sets=[option])
    assert default("rules", sets=[option], method="fedrule").method == "fedrule"
    with pytest.raises(ConfigError, match=r"unknown option 'training.lrr'; did you mean 'training.lr'"):
        default("rules", sets=["training.lrr=0.1"])


def test_rounds_of_a_closed_form_are_its_sums_and_one_line_says_so() -> None:
    request = RunRequest(task="rules", rounds=9)
    assert without_effect(request, resolve(request, {})) == [
        "ridge takes 3 rounds, one for each sum; --rounds 9 has no effect"
    ]
    assert without_effect(RunRequest(task="rules", rounds=3), default("rules")) == []
    with pytest.raises(ConfigError, match="greater than or equal to 1"):
        default("rules", rounds=0)


def test_up_holds_no_data_out_of_the_sums() -> None:
    assert stop_of_up(RunRequest(task="rules")) is None
    assert stop_of_up(RunRequest("fedrule", "rules")) == 20


def test_few_clients_of_one_owner_make_a_small_sum() -> None:
    source, request = DataRequest("demo:0-6"), RunRequest(task="rules")
    assert prepare_clients(request, source, "", 3, None, None).config.secure_sums.min_sum == 3
    assert prepare_clients(request, source, "", None, None, None).config.secure_sums.min_sum == 5
    with pytest.raises(ConfigError, match=r"needs 5 clients, the data make 3; raise --clients"):
        prepare_clients(RunRequest(task="rules", helpers=2), source, "", 3, None, None)
    with pytest.raises((ConfigError, DataError), match=r"needs 2 clients, the data make 1; .* --method fedrule"):
        prepare_clients(request, source, "", 1, None, None)


def test_a_simulation_sums_with_noise_only() -> None:
    source = DataRequest("demo:0-6")
    assert prepare_simulation(RunRequest(task="rules"), source, "", 0, None)[0].privacy.trust == "auto"
    noised = prepare_simulation(RunRequest(task="rules", epsilon=8.0), source, "", 0, None)[0]
    assert (noised.method, noised.privacy.trust) == ("ridge", "helpers")


def test_clients_of_own_data_allow_sums_unless_their_owner_gave_a_policy(tmp_path: Path) -> None:
    homes = {name: tmp_path / name for name in ("helper-1", "helper-2")}
    written = tomllib.loads(pin_helpers(homes, None, tmp_path / "a.toml", OPEN).read_text())
    assert (written["allow-counts"], {*written["helpers"]}) == ("summed", {*homes})
    given = tmp_path / "mine.toml"
    given.write_text('allow-counts = "never"\n')
    written = tomllib.loads(pin_helpers(homes, given, tmp_path / "b.toml", OPEN).read_text())
    assert written["allow-counts"] == "never"


@pytest.mark.parametrize(("trust", "allowed"), [("helpers", "summed"), ("local", "clear")])
def test_a_refusal_and_the_server_s_line_name_what_to_type(trust: str, allowed: str) -> None:
    config = parse({"task": "sessions", "method": "ridge", "privacy.trust": trust})
    with pytest.raises(RefusedError, match=rf'allow-counts = "{allowed}" into the policy.* --method fedga'):
        Policy().check(config)
    [line] = owners_must_allow(config)
    assert f'allow-counts = "{allowed}" in each policy; --method fedga' in line
    assert owners_must_allow(parse({"task": "sessions", "method": "fedga"})) == []
    found = parse({"task": "sessions", "method": "fedga", "catalogue": "federated"})
    assert (found.federation.min_clients, found.clients_to_begin) == (2, 3)
    [line] = owners_must_allow(found)
    assert line.startswith("owners must allow names in their data: allow-names = ")
