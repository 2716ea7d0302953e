"""Configuration of a run: options of a command, a file, defaults of a task, and noise."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.owner.policy import Policy
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, RefusedError
from common.options import Scalar
from common.tasks.registry import TASKS
from deploy.cli.app import app
from deploy.cli.options import DataRequest, RunRequest
from deploy.commands.tasks import describe
from deploy.federation.local_clients import OPEN, pin_helpers, prepare_clients, prepare_simulation
from deploy.federation.request import (
    owners_must_allow,
    read_config_file,
    repeat_partition,
    resolve,
    stop_of_up,
    without_effect,
)
from deploy.federation.runs import remember

pytestmark = pytest.mark.usefixtures("here")


def config_of(
    method: str = "fedavg", sets: list[str] | None = None, epsilon: float | None = None, delta: float | None = None
) -> RunConfig:
    return resolve(RunRequest(method, "markets", sets=sets, epsilon=epsilon, delta=delta), {})


def test_the_network_of_markets_has_its_options_where_its_method_is_named() -> None:
    config = config_of()
    assert (config.method, config.model, config.rounds) == ("fedavg", "default", 20)


def test_another_method_has_none_of_the_network_s_options() -> None:
    assert config_of("pfgnn").rounds == RunConfig.model_fields["rounds"].default


@pytest.mark.parametrize(
    ("sets", "delta", "name"),
    [
        (None, 1e-6, "--delta"),
        (["privacy.epsilon=2"], None, "--set privacy.epsilon"),
        (["privacy.clip=2"], None, "clip"),
    ],
)
def test_options_of_noise_need_noise(sets: list[str] | None, delta: float | None, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} needs --epsilon; this run adds no noise"):
        config_of("fedavg", sets, delta=delta)
    config = config_of("fedavg", [*(sets or []), "privacy.unit=client"], delta=delta)
    assert config.privacy.unit == "client"
    assert config_of("fedavg", epsilon=2.0, delta=delta).privacy.unit == "client"
    assert config_of("fedavg", ["privacy.unit=none"]).privacy.unit == "none"


def test_a_task_without_separate_records_is_refused_for_any_default_mechanism() -> None:
    with pytest.raises(ConfigError, match=r"needs batches of separate records.*; set privacy\.unit=client") as caught:
        resolve(RunRequest(task="ratings", sets=["privacy.unit=record"], epsilon=3.0), {})
    assert "mechanism" not in str(caught.value)


def test_helpers_add_gaussian_noise_whatever_the_task_adds_at_clients() -> None:
    local, summed = (resolve(RunRequest(task="ratings", epsilon=1.0, helpers=n), {}).privacy for n in (None, 2))
    assert (local.mechanism, local.trust) == ("privunit", "auto")
    assert (summed.mechanism, summed.trust) == ("gaussian", "helpers")


@pytest.mark.parametrize("task", TASKS)
def test_fedloom_tasks_names_the_defaults_of_each(task: str) -> None:
    config, defaults = resolve(RunRequest(task=task), {}), describe(task)["defaults"]
    assert config.method == defaults["method"]
    assert config.capabilities.closed_form or config.rounds == defaults.get("rounds", 30)


def test_helpers_of_a_run_on_the_command_line() -> None:
    config = resolve(RunRequest(task="rules", helpers=3), {})
    assert (config.privacy.trust, config.secure_sums.helpers) == ("helpers", 3)
    assert resolve(RunRequest(task="rules", helpers=0), {}).privacy.trust == "local"
    assert resolve(RunRequest(task="rules", sets=["privacy.trust=helpers"]), {}).privacy.trust == "helpers"
    with pytest.raises(ConfigError, match="helpers"):
        resolve(RunRequest(task="rules", helpers=1), {})


def write(text: str, name: str = "run.toml") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def simulate(words: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *words.split()])


@pytest.mark.parametrize(
    "text", ['"training.lr" = 0.5\nrounds = 3', "rounds = 3\n[training]\nlr = 0.5", "rounds=3\ntraining.lr=0.5"]
)
def test_sections_and_dotted_keys_are_the_same_tree(text: str) -> None:
    assert read_config_file(write(text)) == {"rounds": 3, "training.lr": 0.5}


def test_options_win_over_the_file_and_the_file_over_defaults() -> None:
    path = write('method = "fedavg"\nrounds = 3\nseed = 5\nmodel = "paper"\nfederation.min-clients = 4')
    config = resolve(RunRequest(config=path, rounds=7, sets=["model=default"]), {}, {"federation.min-clients": 2})
    assert (config.rounds, config.seed, config.model, config.method) == (7, 5, "default", "fedavg")
    assert config.federation.min_clients == 4
    assert resolve(RunRequest(), {}, {"federation.min-clients": 2}).federation.min_clients == 2
    assert resolve(RunRequest(config=path), {"federation.min-clients": 9}).federation.min_clients == 9


def test_defaults_of_a_task_hold_where_the_file_names_no_method() -> None:
    own = resolve(RunRequest(task="markets"), {})
    filed = resolve(RunRequest(config=write('task = "markets"\nseed = 3')), {})
    assert (filed.method, filed.rounds, filed.seed) == (own.method, own.rounds, 3)


def test_a_method_of_the_command_leaves_out_the_options_of_the_file_s_method() -> None:
    path = write('method = "fedavg"\n[algorithm.fedavg]\nlr = 0.5\n[algorithm.fedprox]\nmu = 0.2')
    config = resolve(RunRequest(config=path, method="fedprox"), {})
    assert config.method_options.model_dump()["mu"] == 0.2


def test_training_of_the_file_s_method_does_not_reach_another_method() -> None:
    path = write('method = "fedavg"\n[training]\nlr = 0.7')
    assert resolve(RunRequest(config=path), {}).method_options.lr == 0.7
    assert resolve(RunRequest(config=path, method="fedprox"), {}).method_options.lr == 0.3
    assert resolve(RunRequest(config=path, sets=["method=fedprox"]), {}).method_options.lr == 0.3
    assert resolve(RunRequest(task="markets", sets=["method=ditto"]), {}).method_options.lr == 0.3


def test_a_former_key_of_the_command_wins_over_the_file_and_the_task() -> None:
    path = write('method = "fedavg"\n[training]\nlr = 0.7')
    assert resolve(RunRequest(config=path, sets=["algorithm.fedavg.lr=0.8"]), {}).method_options.lr == 0.8
    assert resolve(RunRequest("fedavg", "markets", sets=["algorithm.fedavg.lr=0.8"]), {}).method_options.lr == 0.8


def test_epsilon_in_a_file_switches_noise_on() -> None:
    assert resolve(RunRequest(config=write("privacy.epsilon = 3")), {}).privacy.unit == "client"
    stored = write('method = "fedavg"\nprivacy.unit = "none"\nprivacy.epsilon = 10.0')
    assert resolve(RunRequest(config=stored), {}).privacy.unit == "none"
    assert resolve(RunRequest(config=stored, epsilon=2.0), {}).privacy.unit == "client"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("rounds = 3\nroundz = 4", "run.toml, line 2: unknown option 'roundz'; did you mean 'rounds'?"),
        ("[algorithm.fedavg]\n# step\nlrr = 1", "run.toml, line 3: unknown option 'algorithm.fedavg.lrr'; did you"),
        ('"algorithm.nobody.lr" = 1', "run.toml, line 1: unknown option 'algorithm.nobody.lr'"),
        ("[training]\nlam = 1", "run.toml, line 2: unknown option 'training.lam'"),
        ("[algorithm.fedrule]\nlr = -1", "run.toml, line 2: 'training.lr': Input should be greater than 0"),
        ("rounds = 0", "run.toml, line 1: 'rounds': Input should be greater than or equal to 1"),
        ("\n\nseed = [1, 2]", "run.toml, line 3: 'seed' has a value that is no option"),
        ("seed = 2024-01-01", "run.toml, line 1: 'seed' has a value that is no option"),
        ("rounds 3", "run.toml: not a TOML file (Expected '=' after a key"),
    ],
)
def test_faults_name_file_and_line(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config_file(write(text))
    assert str(caught.value).startswith(fault)


def test_unreadable_files_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot read absent.toml \(No such file"):
        read_config_file(Path("absent.toml"))
    Path("odd.toml").write_bytes(b"rounds = \xff")
    with pytest.raises(ConfigError, match=r"odd.toml: not a TOML file"):
        read_config_file(Path("odd.toml"))
    with pytest.raises(ConfigError, match="--config does not apply to --resume"):
        resolve(RunRequest(resume="r1", config=Path("odd.toml")), {})


def test_a_stored_configuration_repeats_its_run(here: Path) -> None:
    first = simulate("--run-id one --data demo:0-6 --clients 2 --rounds 2 --method fedavg --seed 3 --set model=paper")
    assert first.exit_code == 0, first.exception
    again = simulate("--run-id two --config runs/one/config.toml")
    assert again.exit_code == 0, again.exception
    results = [json.loads((here / "runs" / name / "result.json").read_text()) for name in ("one", "two")]
    assert results[0]["model_sha256"] == results[1]["model_sha256"]
    assert simulate("--run-id three --config runs/one/config.toml --rounds 1").exit_code == 0
    result = json.loads((here / "runs" / "three" / "result.json").read_text())
    assert (result["rounds"], result["seed"]) == (1, 3)


def test_a_stored_configuration_keeps_data_and_clients_of_its_command() -> None:
    path = write('run-id = "a"\nfederation.wait = 1.0\nrounds = 2', "runs/a/config.toml")
    remember(path.parent, "simulate", "demo:0-9", 3)
    assert repeat_partition(path, "simulate", "demo", None) == ("demo:0-9", 3)
    assert repeat_partition(path, "simulate", "demo", 2) == ("demo:0-9", 2)
    assert repeat_partition(path, "up", "demo", None) == ("demo:0-9", None)
    assert repeat_partition(path, "simulate", "mine.csv", None) == ("mine.csv", None)
    assert read_config_file(path) == {"rounds": 2}
    assert repeat_partition(write("rounds = 2"), "up", "demo", None) == ("demo", None)


def test_own_data_of_a_repeated_run_must_be_named() -> None:
    path = write('run-id = "a"', "runs/a/config.toml")
    remember(path.parent, "up", "mine.csv", 3)
    with pytest.raises(
        ConfigError, match="run 'a' was trained on own data, whose path is not stored; name them with --data"
    ):
        repeat_partition(path, "up", "demo", None)


def test_the_options_of_a_stored_run_are_shown_with_their_defaults() -> None:
    options: dict[str, Scalar] = {"rounds": 3, "privacy.epsilon": 10.0}
    lines = "\n".join(f'"{key}" = {value}' for key, value in options.items())
    write(lines, "runs/a/config.toml")
    done = CliRunner().invoke(app, ["config", "show", "a"])
    assert done.stdout.splitlines() == ["rounds = 3    (default: 30)", "privacy.epsilon = 10.0"]


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
