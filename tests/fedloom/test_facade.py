"""The Python interface: quick to import, complete, quiet, and equal to the command line."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import torch

import fedloom
from deploy.cli.app import app, load
from deploy.cli.commands import COMMANDS
from deploy.cli.options import DataRequest, RunRequest, TrainingData
from deploy.federation.here import Here
from deploy.tasks.registry import DEPLOY_TASKS
from deploy.tasks.traffic.task import TASK as TRAFFIC
from deploy.tasks.traffic.task import SensorRequest
from fedloom.arguments import RENAMED
from server.record.folder import RunDirectory


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_what_is_promised_is_what_can_be_imported() -> None:
    assert dir(fedloom) == sorted(fedloom.__all__)
    assert all(getattr(fedloom, name) is not None for name in fedloom.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        fedloom.simulat  # noqa: B018


PRINTING = {"json", "quiet", "verbose"}
OF_A_RUN = {"run", "checkpoint", "state_dir"}
"""Options of a run, which is the object itself, and of its models."""
ANSWERED = {option.name for task in DEPLOY_TASKS.usable() for option in task.query}


@pytest.mark.parametrize(
    ("command", "function", "kinds", "further", "command_alone"),
    [
        ("simulate", fedloom.simulate, (RunRequest, TrainingData, Here), set(), set()),
        ("check", fedloom.check, (TrainingData,), set(), set()),
        ("recommend", fedloom.Run.recommend, (DataRequest,), ANSWERED | OF_A_RUN | {"all"}, {"format", "out"}),
        ("forecast", fedloom.Run.forecast, (DataRequest, SensorRequest), OF_A_RUN, {"plot"}),
    ],
)
def test_python_takes_what_the_command_line_takes(
    command: str, function: Callable[..., Any], kinds: tuple[Any, ...], further: set[str], command_alone: set[str]
) -> None:
    found = load(next(ref for ref in (*COMMANDS, *TRAFFIC.commands) if ref.name == command)).params
    words = {word[2:].replace("-", "_") for one in found for word in one.opts if word.startswith("--")}
    taken = further | {*signature(function).parameters} | {field.name for kind in kinds for field in fields(kind)}
    assert {word for word in words if RENAMED.get(word, word) not in taken} == PRINTING | command_alone


def test_the_import_loads_nothing_heavy() -> None:
    code = "import sys, fedloom; assert not {'torch', 'flwr', 'sklearn', 'pyarrow', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_training_returns_the_run_and_prints_nothing(runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    seen: list[int] = []
    run = fedloom.simulate(
        "rules", method="fedrule", rounds=2, data="demo:0-30", on_round=lambda row: seen.append(row["round"])
    )
    assert capfd.readouterr() == ("", "")
    assert seen == [1, 2] == [row["round"] for row in run.rounds]
    assert run.path.parent == runs
    assert run.metrics == fedloom.load_run(run.path).metrics == fedloom.load_run(run.id).metrics
    assert {row["client"] for row in run.clients} == set(run.result.clients) != set()
    assert run.privacy.unit == "none"
    auc, rank, hits = (run.metrics[key] for key in ("auc", "mr0", "hr20_shown"))
    assert repr(run) == f"<Run {run.id}: completed, 2 rounds, auc={auc:.4g}, mr0={rank:.4g}, hr20_shown={hits:.4g}>"
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_equal_calls_give_equal_models_also_inside_an_event_loop(runs: Path) -> None:
    async def train() -> fedloom.Run:
        return fedloom.simulate("rules", method="fedrule", rounds=1, data="demo:0-30", settings={"training.lr": 0.005})

    first, second = asyncio.run(train()), asyncio.run(train())
    assert first.result.model_sha256 == second.result.model_sha256
    rows = fedloom.compare([first, second])
    assert [row["run"] for row in rows] == [first.id, second.id]
    assert rows[0]["auc"] == rows[1]["auc"]
    assert "auc_difference" not in rows[0]
    assert (rows[1]["auc_difference"], rows[1]["auc_se"]) == (0, 0)


def test_an_error_of_the_callback_is_raised(runs: Path) -> None:
    def fail(row: dict[str, object]) -> None:
        raise ValueError("stop here")

    with pytest.raises(ValueError, match="stop here"):
        fedloom.simulate("rules", method="fedrule", rounds=1, data="demo:0-30", on_round=fail)


def test_errors_are_those_of_the_command_line(runs: Path) -> None:
    with pytest.raises(fedloom.ConfigError, match="did you mean"):
        fedloom.simulate("ruls", rounds=1)
    with pytest.raises(fedloom.DataError):
        fedloom.simulate("rules", method="fedrule", rounds=1, data="missing.csv")
    with pytest.raises(fedloom.ConfigError, match="no run 'nothing'"):
        fedloom.load_run("nothing")


def test_a_run_without_a_result_says_if_a_process_works_on_it(runs: Path) -> None:
    folder = RunDirectory(runs, "cut")
    folder.create({}, {})
    with pytest.raises(fedloom.ConfigError, match=r"no result; it has ended; continue it with resume='cut'$"):
        fedloom.load_run("cut")
    with folder.lock(), pytest.raises(fedloom.ConfigError, match=rf"no result; process {os.getpid()} works on it$"):
        fedloom.load_run("cut")


def test_a_method_of_ones_own_trains(runs: Path) -> None:
    from typing import ClassVar

    from common.api import Arrays, MethodOptions, MethodSpec
    from server.api import Contribution, Groups, Method, RoundContext

    class Still(MethodOptions):
        name: ClassVar[str] = "still"

    class StillStep(Method):
        def __init__(self, options: Still) -> None:
            pass

        def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
            return model, state

    fedloom.add_method(MethodSpec(Still, "Change nothing"), StillStep)
    first, second = (fedloom.simulate("rules", data="demo:0-30", method="still", rounds=n) for n in (1, 2))
    assert first.result.model_sha256 == second.result.model_sha256

    class Taken(MethodOptions):
        name: ClassVar[str] = "fedavg"

    with pytest.raises(fedloom.ConfigError, match="method 'fedavg' is provided by fedloom; choose another name"):
        fedloom.add_method(MethodSpec(Taken, "Mine"), StillStep)


def test_a_run_recommends_and_forecasts_as_the_command_line(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fedloom.simulate("rules", method="fedrule", rounds=1, data="demo:0-30")
    app(["recommend", "--run", run.id, "--user", "home-00003", "--top", "3", "--json"], standalone_mode=False)
    printed = json.loads(capsys.readouterr().out)
    assert [dict(one.fields) for one in run.recommend(user="home-00003", top=3)] == printed
    with pytest.raises(fedloom.ConfigError, match="market does not apply"):
        run.recommend(market="hills")
    everybody = run.recommend(data="demo:0-5", all=True, top=2, checkpoint="final", state_dir=runs / "state")
    words = f"recommend --run {run.id} --data demo:0-5 --all --top 2 --checkpoint final --json"
    app(words.split(), standalone_mode=False)
    printed = [(row["user"], row["what"]) for row in json.loads(capsys.readouterr().out)]
    assert [(one.fields["user"], one.what) for one in everybody] == printed != []
    assert (run.path / "examples.json").exists(), "as of the command line, for generated data"
    with pytest.raises(fedloom.ConfigError, match=r"checkpoint=7: run '.*' stores the rounds"):
        run.recommend(checkpoint=7)


def test_a_forecast_takes_checkpoint_client_and_state_dir(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fedloom.simulate("traffic", data="demo:0-2", method="fedavg", rounds=1)
    words = ["forecast", "--run", run.id, "--data", "demo:0-2", "--checkpoint", "final", "--horizon", "3", "--json"]
    app(words, standalone_mode=False)
    printed = json.loads(capsys.readouterr().out)["rows"]
    assert run.forecast(data="demo:0-2", checkpoint="final", horizon=3) == printed
    with pytest.raises(
        fedloom.ConfigError, match=r'client="me": no such client .*; give its state_dir, or remove client$'
    ):
        run.forecast(data="demo:0-2", client="me", state_dir=str(runs))
    with pytest.raises(fedloom.ConfigError, match="forecast has no option 'checkpoin'; did you mean 'checkpoint'"):
        run.forecast(data="demo:0-2", checkpoin="final")


def test_a_run_is_exported_with_a_model_card(runs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = fedloom.simulate("ratings", method="fedavg", rounds=1, data="demo:0-8")
    path = run.export_onnx(tmp_path / "model.onnx")
    assert capfd.readouterr() == ("", "")
    assert path.stat().st_size > 0
    assert run.result.model_sha256 in (tmp_path / "model-card.json").read_text()
    with pytest.raises(fedloom.ConfigError, match="exists; remove it"):
        run.export_onnx(path)
    own = run.export_onnx(tmp_path / "own" / "model.onnx", data="demo:0-8", unit="rater-00003")
    assert "do not hand on" in (own.parent / "model-card.md").read_text()


def test_check_reports_what_training_would_read(tmp_path: Path) -> None:
    table = tmp_path / "ratings.csv"
    table.write_text("user,item,rating\n" + "".join(f"u{n % 4},i{n},{n % 5 + 1}\n" for n in range(40)))
    report = fedloom.check(str(table), task="ratings", catalogue=tmp_path / "names.json")
    assert (tmp_path / "names.json").read_text() == report.vocabulary
    with pytest.raises(fedloom.ConfigError, match="exists; remove it"):
        fedloom.check(str(table), task="ratings", catalogue=tmp_path / "names.json")
    assert isinstance(report, fedloom.DataReport)
