"""Exit codes of the command line."""

import sys
from pathlib import Path

import pytest

from common.errors import DataError, FedloomError, QuorumError, RunError, VocabularyError
from deploy.cli import main
from deploy.cli.output import EXIT_CODES, INTERRUPTED, find_error_class, find_exit_code, list_errors
from deploy.federation.watch import finish
from server.record.folder import RunDirectory
from server.record.result import Result
from tests.support.run_folders import make_run

CODES = {
    "FedloomError": 1,
    "RunError": 1,
    "WireError": 1,
    "ConfigError": 2,
    "StateError": 2,
    "DataError": 3,
    "VocabularyError": 3,
    "NothingYetError": 3,
    "RefusedError": 4,
    "LedgerError": 4,
    "BudgetSpentError": 4,
    "ConnectError": 5,
    "QuorumError": 5,
}
"""Documented exit codes (docs/reference/commands.md)."""


@pytest.mark.parametrize("kind", list_errors(), ids=lambda kind: kind.__name__)
def test_every_error_has_its_documented_code(kind: type[FedloomError]) -> None:
    nearest = next(base.__name__ for base in kind.__mro__ if base.__name__ in CODES)
    assert find_exit_code(kind.__new__(kind)) == CODES[nearest]
    shared = kind.__module__ == FedloomError.__module__ and kind.__base__ is FedloomError
    assert kind in EXIT_CODES or not shared, "a new kind of error needs a code of its own"


def test_other_errors_have_the_codes_of_shells() -> None:
    assert find_exit_code(PermissionError("x")) == 1
    assert find_exit_code(KeyboardInterrupt()) == INTERRUPTED
    assert find_exit_code(ValueError("x")) is None


def test_an_error_is_found_by_its_name() -> None:
    assert find_error_class("VocabularyError") is VocabularyError
    assert find_error_class("") is RunError
    assert find_error_class("SystemExit") is RunError


@pytest.mark.parametrize(
    ("error", "kind"), [("QuorumError", QuorumError), ("DataError", DataError), ("", RunError), ("Nonsense", RunError)]
)
def test_a_failed_run_ends_with_the_error_that_ended_it(tmp_path: Path, error: str, kind: type[FedloomError]) -> None:
    result = stored_result(tmp_path, error)
    with pytest.raises(kind, match=r"^the run failed: 1 of 4 clients answered, 2 are needed$"):
        finish(result, json_wanted=False)


def stored_result(root: Path, error: str) -> Result:
    make_run(root, "r1", rounds=1, status="failed")
    path = root / "r1" / "result.json"
    path.write_text(path.read_text().replace('"error": ""', f'"error": "{error}"'))
    result = RunDirectory(root, "r1").result()
    assert result
    return result


@pytest.mark.parametrize(
    ("raised", "code", "shown"),
    [
        (QuorumError("too few"), 5, "fedloom: too few\n"),
        (
            PermissionError(13, "Permission denied", "runs"),
            1,
            "fedloom: runs: Permission denied; run it as the owner, or in a folder in which you may write\n",
        ),
        (OSError(28, "No space left"), 1, "fedloom: No space left; make room, or run it in a folder of another disk\n"),
        (OSError(21, "Is a directory", "runs"), 1, "fedloom: runs: Is a directory\n"),
        (OSError("odd"), 1, "fedloom: odd\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_expected_error_is_one_line(
    raised: BaseException, code: int, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise raised

    monkeypatch.setattr("deploy.commands.tasks.tasks", fail)
    monkeypatch.setattr(sys, "argv", ["fedloom", "tasks"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (code, shown)


def test_ctrl_c_outside_of_a_command_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deploy.cli.app.app", interrupt)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_an_unexpected_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("a fault of ours")

    monkeypatch.setattr("deploy.commands.tasks.tasks", fail)
    monkeypatch.setattr(sys, "argv", ["fedloom", "tasks"])
    with pytest.raises(ValueError, match="a fault of ours"):
        main()
