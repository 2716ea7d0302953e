"""Start of a federation: names in certificates, the owner's policy, and interruptions."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from common.config.parse import flatten, parse
from common.errors import ConfigError, RunError
from common.tasks.rules.vocabulary import demo_catalogue
from deploy import cli
from deploy.cli.app import app
from deploy.federation import start as federation
from deploy.federation.processes import Processes
from deploy.federation.start import Order, submit
from deploy.keys.certificates import ensure_certificates, make_server_certificate, names_of
from deploy.superlink.control import Control
from deploy.superlink.superlink import SuperLinkSettings
from server.record.folder import RunDirectory
from server.record.result import Result


def test_a_certificate_for_another_host_is_refused(tmp_path: Path) -> None:
    files = ensure_certificates(tmp_path, ["a.example"])
    assert ensure_certificates(tmp_path) == ensure_certificates(tmp_path, ["a.example", "0:0:0:0:0:0:0:1"]) == files
    with pytest.raises(
        ConfigError, match=r"not valid for 'b.example'; run .* --renew --name a.example --name b.example"
    ):
        ensure_certificates(tmp_path, ["b.example"])
    before = files.server.read_bytes()
    make_server_certificate(tmp_path, overwrite=True)
    assert files.server.read_bytes() != before
    assert names_of(files.server) == ("localhost", "127.0.0.1", "::1", "a.example")
    make_server_certificate(tmp_path, ["b.example"], overwrite=True)
    assert "a.example" not in names_of(files.server)


def test_an_invalid_host_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'müller\.local' is not a host name"):
        ensure_certificates(tmp_path, ["müller.local"])


class Controls(Control):
    """Control API that starts run 7, or does not answer."""

    def __init__(self, home: Path, answers: bool = True) -> None:
        super().__init__("nowhere:9", None)
        self.answers, self.stopped = answers, list[int]()

    def submit(self, app: Path, run_config: Any = None) -> int:
        if not self.answers:
            raise RunError("no SuperLink answers")
        return 7

    def stop(self, run_id: int) -> None:
        self.stopped.append(run_id)
        raise RunError("it has ended")


@pytest.fixture
def order(tmp_path: Path) -> Order:
    folder = tmp_path / "runs" / "r1"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text("old")
    return Order(parse({"method": "fedavg", "run-id": "r1", "resume": True}), tmp_path / "runs")


def submit_order(order: Order, control: Controls, console: Console | None = None) -> Result:
    return submit(Processes(), order.runs.parent / "work", control, order, console or Console(quiet=True))


@pytest.mark.parametrize("end", [SystemExit(143), KeyboardInterrupt(), RunError("no answer to three requests")])
def test_a_run_without_a_watcher_is_stopped(end: BaseException, order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(*arguments: Any) -> Result:
        raise end

    monkeypatch.setattr(federation, "watch", watch)
    control = Controls(order.runs.parent / "control")
    with pytest.raises(type(end)):
        submit_order(order, control)
    assert control.stopped == [7]


@pytest.mark.parametrize(
    ("ended", "hint"),
    [(False, "resume with --resume r1"), (True, "the run is over, write its report with fedloom report r1")],
)
def test_ctrl_c_says_how_to_go_on(ended: bool, hint: str, order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(*arguments: Any) -> Result:
        if ended:
            (order.runs / "r1" / "result.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(federation, "watch", watch)
    output = StringIO()
    with pytest.raises(KeyboardInterrupt):
        submit_order(order, Controls(order.runs.parent / "control"), Console(file=output, width=200))
    assert output.getvalue() == f"\nstopping; {hint}\n"


def test_the_result_of_a_run_that_cannot_resume_is_kept(order: Order) -> None:
    with pytest.raises(RunError, match="no SuperLink answers"):
        submit_order(order, Controls(order.runs.parent / "control", answers=False))
    assert (order.runs / "r1" / "result.json").read_text() == "old"


def test_clients_of_the_command_start_once_while_the_superlink_starts(
    order: Order, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events: list[str] = []

    def start_superlink(processes: Processes, settings: SuperLinkSettings, meanwhile: Callable[[], object]) -> None:
        events.append("starts")
        meanwhile()
        events.append("serves")

    def submit(processes: Processes, folder: Path, control: Any, order: Order, *further: Any) -> Result:
        events.extend(key.name for key in order.keys)
        raise KeyboardInterrupt

    def start_clients() -> list[Path]:
        events.append("clients")
        return [tmp_path / "new.pub"]

    monkeypatch.setattr(federation, "start_superlink", start_superlink)
    monkeypatch.setattr(federation, "submit", submit)
    settings, order = SuperLinkSettings(tmp_path / "home"), replace(order, keys=[tmp_path / "old.pub"])
    with pytest.raises(KeyboardInterrupt):
        federation.train(Processes(), settings, order, Console(quiet=True), start_clients)
    assert events == ["starts", "clients", "serves", "old.pub", "new.pub"]


def test_the_owner_s_policy_is_kept_over_a_pause(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("strict.toml").write_text('share-metrics = "never"\n')
    calls: list[tuple[str, float]] = []

    def start(*arguments: Any) -> Path:
        *_, policy, patience, _ = arguments
        calls.append((policy.read_text() if policy else "", patience))
        return here / "key.pub"

    def train(
        processes: Any, superlink: Any, order: Order, console: Any, start_clients: Callable[[], Sequence[Path]]
    ) -> Result:
        assert start_clients() == [here / "key.pub"] * 2
        if not order.config.resume:
            names = json.loads(demo_catalogue().to_json())
            RunDirectory(order.runs, order.config.run_id).create(flatten(order.config), names)
        raise KeyboardInterrupt

    monkeypatch.setattr(federation, "start_client", start)
    monkeypatch.setattr(federation, "train", train)
    first = "up --method fedavg --data demo:0-4 --clients 2 --run-id r1 --policy strict.toml"
    for command in (first, "up --resume r1"):
        ended = CliRunner().invoke(app, command.split())
        assert isinstance(ended.exception, SystemExit | KeyboardInterrupt), ended.exception
    assert calls == [('share-metrics = "never"\n', 36.0)] * 4


def test_disk_errors_are_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "argv", ["fedloom", "keys", "node", str(tmp_path / "file" / "node.key")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    output = capsys.readouterr().err
    assert "Traceback" not in output
    assert output == f"fedloom: {tmp_path / 'file'}: File exists\n"
