"""`--config FILE`: order of options, errors with file and line, and repeated runs."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.errors import ConfigError
from common.options import Scalar
from deploy.cli.app import app
from deploy.cli.options import RunRequest
from deploy.federation.request import read_config_file, repeat_partition, resolve
from deploy.federation.runs import remember

pytestmark = pytest.mark.usefixtures("here")


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
