"""Application of the command line: version, help, suggestions and completion."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import click.testing
import pytest
import typer
from click import Command, Context
from typer.testing import CliRunner

from deploy.cli.app import PANELS, app, load
from deploy.cli.commands import COMMANDS, CommandRef
from deploy.cli.output import console
from tests.support.run_folders import make_run


def invoke(*words: str, code: int = 0) -> str:
    """Return stdout and stderr of a command."""
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def test_the_version_names_what_a_report_of_a_fault_needs() -> None:
    packages = f"flwr {version('flwr')}, torch {version('torch')}"
    python = ".".join(map(str, sys.version_info[:3]))
    assert invoke("--version") == f"fedloom {version('fedloom')} ({packages}, python {python})\n"


@pytest.mark.parametrize("words", ["-q tasks", "tasks -q", "--quiet runs list", "runs list --quiet"])
def test_options_of_the_program_are_taken_before_and_after_a_command(
    words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "quiet", False)
    invoke(*words.split())
    assert console.quiet


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        ("upp", "'up'"),
        ("--versoin", "'--version'"),
        ("up --methdo fedavg", "'--method'"),
        ("keys nod", "'node'"),
        ("report --josn", "'--json'"),
    ],
)
def test_a_mistyped_word_is_answered_with_one_suggestion(words: str, suggestion: str) -> None:
    output = " ".join(invoke(*words.split(), code=2).split())
    [suggested] = re.findall(r"[Dd]id you mean ([^?]*)\?", output)
    assert suggestion in suggested


def test_several_seeds_make_a_sweep_of_a_simulation_and_are_refused_elsewhere() -> None:
    refused = CliRunner().invoke(app, ["simulate", "--task", "rules", "--seed", "1,x"]).exception
    assert str(refused) == "--seed 1,x: name whole numbers, such as 1,2,3"
    refused = CliRunner().invoke(app, ["up", "--seed", "1,2"]).exception
    assert str(refused) == "--seed: '1,2' is not a whole number; fedloom sweep --seed 1,2,3 takes several"


def sample(
    file: Annotated[str, typer.Argument(help="File of [sumo] or [1, 2].")] = "",
    out: Annotated[str, typer.Option(help="Folder [dim], as typed.")] = "",
) -> None:
    """Install fedloom[sumo] first.

    Then [bold]this[/] is
    one line.
    """


def test_help_shows_brackets_as_typed_and_joins_lines() -> None:
    command = load(CommandRef("sample", f"{__name__}:sample", "Install fedloom[sumo] first.", "Prepare"))
    lines = {" ".join(re.sub("[│╭╮╰╯─]", " ", line).split()) for line in help_of(command).splitlines()}
    assert {"Install fedloom[sumo] first.", "Then [bold]this[/] is one line."} <= lines
    assert {"file [FILE] File of [sumo] or [1, 2].", "--out TEXT Folder [dim], as typed."} <= lines


def help_of(command: Command) -> str:
    done = click.testing.CliRunner().invoke(command, ["--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.exception
    return done.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_calls_fedloom(shell: str) -> None:
    script = invoke("completion", shell)
    assert f"_FEDLOOM_COMPLETE=complete_{shell}" in script


def test_an_unknown_shell_is_refused_with_the_supported_ones() -> None:
    output = invoke("completion", "tcsh", code=2)
    assert all(shell in output for shell in ("bash", "zsh", "fish"))


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("fedloom comp", {"completion"}),
        ("fedloom report r", {"r1", "r2"}),
        ("fedloom report r1 r2", {"r2"}),
        ("fedloom up --resume r", {"r1", "r2"}),
        ("fedloom up --task mark", {"markets"}),
        ("fedloom up --set privacy.ep", {"privacy.epsilon="}),
        ("fedloom nodes rot", {"rotate"}),
    ],
)
def test_the_script_completes(words: str, completed: set[str], tmp_path: Path) -> None:
    make_run(tmp_path, "r1", rounds=1)
    make_run(tmp_path, "r2", rounds=1)
    environment = {**os.environ, "FEDLOOM_RUNS": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    environment |= {"_FEDLOOM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-m", "deploy.cli"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == completed, done.stderr


@pytest.mark.parametrize("name", ["up", "simulate", "serve", "submit", "join", "recommend"])
def test_the_options_of_a_command_are_grouped(name: str) -> None:
    command = load(next(ref for ref in COMMANDS if ref.name == name))
    shown = (parameter for parameter in command.params if not getattr(parameter, "hidden", False))
    groups = {parameter.opts[0]: getattr(parameter, "rich_help_panel", None) for parameter in shown}
    assert list(groups.values()) == sorted(groups.values(), key=PANELS.index)
    help_option = command.get_help_option(Context(command))
    assert getattr(help_option, "rich_help_panel", None) == "Output"
