"""Options that may accompany `--resume`, and options that would make it another run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from common.config.parse import flatten, parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import BGTplanner
from common.options import Scalar
from common.tasks.rules.vocabulary import demo_catalogue
from deploy.cli.app import app
from deploy.cli.options import RunRequest
from deploy.federation.request import resolve
from server.record.folder import Checkpoint, RunDirectory
from tests.deploy.pages.test_summary import RESULT


@pytest.fixture(autouse=True)
def runs(here: Path) -> Path:
    """Store three runs that have begun: with noise, without, and with planned noise."""
    begin("exact", {"method": "fedrule", "rounds": 3, "seed": 1})
    begin("noisy", {"method": "fedavg", "privacy.unit": "client", "privacy.epsilon": 4.0})
    begin("planned", {"method": "bgtplanner", "rounds": 8, "privacy.unit": "client"})
    return here / "runs"


def begin(run: str, options: dict[str, Scalar]) -> None:
    RunDirectory(Path("runs"), run).create(
        flatten(parse({**options, "run-id": run})), json.loads(demo_catalogue().to_json())
    )


def test_a_run_goes_back_to_a_round_that_has_a_checkpoint() -> None:
    folder = RunDirectory(Path("runs"), "exact")
    for number in (1, 2, 3):
        folder.checkpoints.save(Checkpoint(number, 1, {}), best_round=0)
    assert resumed("exact", round=2).resume
    assert folder.checkpoints.rounds() == [1, 2]
    with pytest.raises(ConfigError, match="no checkpoint of round 3; choose --round from: 1, 2"):
        resumed("exact", round=3)
    with pytest.raises(ConfigError, match="add --resume RUN"):
        resolve(RunRequest(round=3), {})


def resumed(run: str, sets: list[str] | None = None, clients: int | None = None, **options: Any) -> RunConfig:
    return resolve(RunRequest(resume=run, sets=sets, **options), {"federation.min-clients": clients})


@pytest.mark.parametrize(
    ("command", "words", "name", "own"),
    [
        ("up", "--resume exact --method fedavg", "--method", "method=fedrule"),
        ("up", "--resume exact --task traffic", "--task", "task=rules"),
        ("simulate", "--resume exact --seed 2", "--seed", "seed=1"),
        ("simulate", "--resume exact --epsilon 10", "--epsilon", "no noise"),
        ("simulate", "--resume exact --delta 1e-5", "--delta", "no noise"),
        ("simulate", "--resume noisy --epsilon 10", "--epsilon", "privacy.epsilon=4.0"),
        ("simulate", "--resume noisy --delta 1e-6", "--delta", "privacy.delta=1e-05"),
        ("simulate", "--resume exact --run-id other", "--run-id", "run-id=exact"),
        ("simulate", "--resume exact --set model=paper", "--set model", "model=default"),
        ("simulate", "--resume exact --set privacy.unit=client", "--set privacy.unit", "privacy.unit=none"),
        (
            "simulate",
            "--resume exact --set tasks.rules.validation_share=0.1",
            "--set tasks.rules.validation-share",
            "validation-share=0.0",
        ),
        ("simulate", "--resume planned --rounds 9", "--rounds", "rounds=8"),
        (
            "simulate",
            "--resume planned --set algorithm.bgtplanner.arms=3",
            "--set algorithm.bgtplanner.arms",
            "algorithm.bgtplanner.arms=5",
        ),
        (
            "simulate",
            "--resume planned --set algorithm.bgtplanner.t_min=0.5",
            "--set algorithm.bgtplanner.t-min",
            "algorithm.bgtplanner.t-min=0.8",
        ),
        ("serve", "--resume exact --catalogue other.json", "--catalogue", "its own vocabulary"),
        ("simulate", "--resume exact --catalogue other.json", "--catalogue", "its own vocabulary"),
        ("up", "--resume exact --data other.csv", "--data", "its own 1 client and their data"),
        ("up", "--resume exact --clients 2", "--clients", "its own 1 client and their data"),
    ],
)
def test_options_that_make_another_run_are_refused_by_name(
    command: str, words: str, name: str, own: str, tmp_path: Path
) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"entities": ["Light"], "relations": ["turns on → turn on"]}))
    spec = {"name": "client-0", "task": "rules", "data": "demo:0-9", "home": "here"}
    (tmp_path / ".fedloom" / "up" / "exact").mkdir(parents=True)
    (tmp_path / ".fedloom" / "up" / "exact" / "clients.json").write_text(json.dumps([spec]))
    error = CliRunner().invoke(app, [command, *words.split()]).exception
    assert isinstance(error, ConfigError)
    run = words.split()[1]
    assert str(error).startswith(f"run '{run}' continues with ")
    assert own in str(error)
    assert f"; remove {name}, or start a new run without --resume" in str(error)


def test_options_of_the_run_may_be_repeated() -> None:
    config = resumed("exact", ["model=default", "privacy.unit=none"], method="fedrule", seed=1)
    assert (config.run_id, config.resume, config.rounds) == ("exact", True, 3)
    assert resumed("noisy", ["privacy.clip=1"], epsilon=4, delta=1e-5).privacy.epsilon == 4


def test_waiting_times_and_steps_may_change() -> None:
    sets = ["federation.deadline=7", "algorithm.fedrule.lam=0.25", "evaluate-every=2"]
    config = resumed("exact", sets, clients=3)
    assert (config.federation.deadline, config.federation.min_clients, config.evaluate_every) == (7, 3, 2)
    assert config.method_options.lam == 0.25


def test_a_finished_run_needs_more_rounds(runs: Path) -> None:
    RunDirectory(runs, "exact").write_result(replace(RESULT, rounds_done=3))
    with pytest.raises(ConfigError, match="has done all its 3 rounds; set more with --rounds"):
        resumed("exact")
    assert resumed("exact", rounds=4).rounds == 4
    begin("short", {"rounds": 1})
    RunDirectory(runs, "short").write_result(replace(RESULT, rounds_done=1))
    with pytest.raises(ConfigError, match="has done its one round; set more"):
        resumed("short")


def test_early_stopping_of_a_planner_may_change_but_not_its_rounds(runs: Path) -> None:
    """Its state counts rounds by arms and by T."""
    sets = [f"planner.{option}" for option in ("stop=plateau", "patience=3", "min-gain=0.01")]
    sets += ["algorithm.bgtplanner.arms=5"]
    config = resumed("planned", [*sets, "federation.deadline=7", "training.lr=0.5", "rounds=8"])
    planner = cast(BGTplanner, config.planner)
    assert (planner.stop, planner.patience, planner.min_gain, planner.arms) == ("plateau", 3, 0.01, 5)
    assert (config.rounds, config.federation.deadline, config.method_options.lr) == (8, 7, 0.5)
    assert resumed("noisy", rounds=9).rounds == 9, "other planners may get more rounds"
    RunDirectory(runs, "planned").write_result(replace(RESULT, rounds_done=8))
    with pytest.raises(ConfigError, match="has done all rounds of its planned budget"):
        resumed("planned")


@pytest.mark.parametrize(
    ("options", "fixed", "free"),
    [
        ({"method": "ifca"}, "algorithm.ifca.clusters=3", "algorithm.ifca.recluster-every=2"),
        ({"method": "ditto"}, "", "training.local-steps=7"),
        ({"method": "fedstl", "task": "traffic"}, "algorithm.fedstl.clusters=3", "algorithm.fedstl.cluster-steps=1"),
        (
            {"method": "uniform", "privacy.unit": "client", "planner.inner": "fedrep"},
            "planner.inner=fedavg",
            "training.local-steps=7",
        ),
        ({"method": "fedavg", "privacy.unit": "record"}, "training.local-steps=7", "training.lr=0.25"),
    ],
)
def test_options_of_client_state_and_of_costs_do_not_change(options: dict[str, Scalar], fixed: str, free: str) -> None:
    begin("settled", options)
    key, _, value = free.partition("=")
    assert str(flatten(resumed("settled", [free]))[key]) == value
    if fixed:
        name = fixed.partition("=")[0].replace("_", "-")
        with pytest.raises(ConfigError, match=f"continues with its own {name}=.*; remove --set {name}"):
            resumed("settled", [fixed])


def test_former_keys_of_a_method_name_the_same_options() -> None:
    assert resumed("exact", ["algorithm.fedrule.local-steps=7"]).method_options.local_steps == 7
    with pytest.raises(ConfigError, match=r"its own planner\.inner=fedavg; remove --set algorithm\.bgtplanner\.inner"):
        resumed("planned", ["algorithm.bgtplanner.inner=fedprox"])


def test_helpers_of_a_resumed_run_are_replaced_as_a_whole() -> None:
    begin("summed", {"method": "fedavg", "privacy.trust": "helpers", "rounds": 3})
    assert resumed("summed", new_helpers=True, sets=["secure-sums.deadline=5"]).secure_sums.renew
    assert resumed("summed", helpers=2).privacy.trust == "helpers"
    with pytest.raises(ConfigError, match=r"its own secure-sums\.helpers=2; remove --helpers"):
        resumed("summed", helpers=3)
    with pytest.raises(ConfigError, match=r"its own privacy\.trust=auto; remove --helpers"):
        resumed("exact", helpers=2)
    with pytest.raises(ConfigError, match="helpers open the sum of a round once"):
        resumed("summed", round=1)
    with pytest.raises(ConfigError, match="--new-helpers belongs to --resume"):
        resolve(RunRequest(new_helpers=True), {})
