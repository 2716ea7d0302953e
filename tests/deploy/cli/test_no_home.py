"""Commands of a user without a home folder."""

import pwd
from pathlib import Path

import pytest
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from deploy.cli.commands import COMMANDS


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(user: int) -> None:
        raise KeyError(user)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError):
        Path.home()


@pytest.mark.parametrize("name", [ref.name for ref in COMMANDS])
def test_each_command_shows_its_help(name: str) -> None:
    assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


@pytest.mark.parametrize(
    "words", [["runs"], ["tasks"], ["check", "demo", "--task", "rules"], ["status", "--state-dir", "."]]
)
def test_commands_work_that_need_none(words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.parametrize("words", [["pause"], ["status"], ["budget"], ["preview", "--data", "demo:0-4"]])
def test_others_say_what_to_set(words: list[str]) -> None:
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, ConfigError)
    assert str(error) == "no home folder for ~/.fedloom/state; set HOME, or name a folder with --state-dir"
