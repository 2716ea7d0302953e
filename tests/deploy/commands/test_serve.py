"""Option `--resume-if-there`: start, continue, or leave a finished run."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from deploy.cli.options import RunRequest
from deploy.commands.serve import start_or_continue
from tests.support.run_folders import MakeRun
from tests.system.desk import ROOT

HOME = Path("home")
REQUEST = RunRequest(run_id="r1", rounds=3, seed=5)


def test_a_run_that_does_not_exist_is_started(here: Path) -> None:
    assert start_or_continue(REQUEST, HOME) == REQUEST


def test_an_unfinished_run_is_continued(
    here: Path, fake_run: MakeRun, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = fake_run("r1")
    monkeypatch.setenv("FEDLOOM_RUNS", str(folder.parent))
    (HOME / "app").mkdir(parents=True)  # as a kill just after the last round leaves it
    assert start_or_continue(RunRequest(run_id="r1"), HOME) is None
    assert not (HOME / "app").exists()
    assert "run 'r1' is finished" in capfd.readouterr().err
    more = start_or_continue(RunRequest(run_id="r1", rounds=10_000), HOME)
    assert more == RunRequest(resume="r1", rounds=10_000)
    (folder / "result.json").unlink()
    assert start_or_continue(RunRequest(run_id="r1"), HOME) == RunRequest(resume="r1")


@pytest.mark.parametrize("request_", [RunRequest(), RunRequest(run_id="r1", resume="r1")])
def test_a_name_is_needed(here: Path, request_: RunRequest) -> None:
    with pytest.raises(ConfigError, match="--resume-if-there needs --run-id NAME, and no --resume"):
        start_or_continue(request_, HOME)


def test_the_limits_of_the_door_are_printed_as_the_page_of_the_wire_has_them() -> None:
    printed = [line.split(maxsplit=1) for line in CliRunner().invoke(app, ["serve", "--limits"]).stdout.splitlines()]
    page = (ROOT / "docs/reference/wire.md").read_text("utf-8").partition("## Limits of the door")[2]
    rows = [line.strip("| ").split(" | ") for line in page.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    assert [[name, " ".join(rest.split())] for name, rest in printed] == [
        [name, " ".join(f"{value} {about}".split())] for name, value, about in rows[2:]
    ]
    assert ["handshakes", "20"] in [row[:2] for row in rows]
