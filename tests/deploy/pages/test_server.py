"""Server of the live page as a process and beside a run."""

import io
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from deploy.commands.ui import page_of
from deploy.pages import live as server
from deploy.pages.live import bind, live_page, page_address
from deploy.superlink.superlink import free_port
from tests.support.ui import write_run


def address_in(text: str) -> str:
    return text.partition("live page: ")[2].split()[0]


def test_a_page_is_served_while_the_block_works_and_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PORT", free_port())
    write_run(tmp_path / "runs", "r1")
    out = io.StringIO()
    with live_page(tmp_path / "runs", tmp_path / "token", "r1", Console(file=out, width=300), stays=False):
        address = address_in(out.getvalue())
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"fedloom" in opener.open(address, timeout=20).read()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address.replace("token=", "token=x"), timeout=20)
        assert refused.value.code == 401
        refused.value.close()
    assert "fedloom ui --run r1" in out.getvalue()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)


def test_a_run_whose_default_port_is_taken_gets_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(server, "PORT", taken.getsockname()[1])
        out = io.StringIO()
        with live_page(tmp_path, tmp_path / "token", "r1", Console(file=out, width=300), stays=False):
            assert f":{taken.getsockname()[1]}/" not in address_in(out.getvalue())


def test_a_failed_run_ends_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PORT", free_port())
    begin = time.monotonic()
    with (
        pytest.raises(ConfigError),
        live_page(tmp_path, tmp_path / "token", "r1", Console(file=io.StringIO()), stays=True),
    ):
        raise ConfigError("no")
    assert time.monotonic() - begin < 10


def test_the_page_listens_on_the_loopback_address_only() -> None:
    with bind(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        address = page_address(listener, "t", ["a", "b&c"])
        assert address == f"http://127.0.0.1:{listener.getsockname()[1]}/?run=a&run=b%26c&token=t"


def test_without_a_wish_no_page_is_served(here: Path) -> None:
    with page_of("r1", wanted=False, json=False):
        pass
    assert not (here / ".fedloom").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--run", "nothing"], "no run 'nothing'"),
        (["--run", "../x"], "invalid run id"),
        (["--host", "0.0.0.0"], "No such option"),
        (["--port", "70000"], "70000"),
        ([word for k in range(9) for word in ("--run", f"r{k}")], "9 runs exceed 8"),
    ],
)
def test_wrong_options_are_refused(here: Path, words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["ui", "--no-open", *words])
    assert done.exit_code != 0
    assert message in done.output + str(done.exception)


def test_a_port_in_use_is_named(here: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = CliRunner().invoke(app, ["ui", "--no-open", "--port", str(taken.getsockname()[1])])
    assert isinstance(done.exception, ConfigError)
    assert "choose another with --port" in str(done.exception)
