"""Server of the live page: its guard, its answers, and its end."""

import io
import os
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
from deploy.pages.live import HEADERS, bind, live_page, page_address, stored_token
from deploy.superlink.superlink import free_port
from tests.support.ui import TOKEN, ask, write_run


def test_a_request_without_the_token_is_refused(tmp_path: Path) -> None:
    assert ask(tmp_path, "/", cookie=None).status == 401
    assert ask(tmp_path, "/static/page.js", cookie=None).status == 401
    assert ask(tmp_path, "/api/runs", cookie="fedloom-8765=" + "x" * 43).status == 401
    assert ask(tmp_path, "/api/runs", cookie="fedloom-8765=\xff\xfe").status == 401


def test_a_cookie_of_another_port_is_refused(tmp_path: Path) -> None:
    assert ask(tmp_path, "/", cookie=f"fedloom-8766={TOKEN}").status == 401


def test_the_token_of_the_address_becomes_a_cookie(tmp_path: Path) -> None:
    answer = ask(tmp_path, "/", f"run=a&token={TOKEN}&run=b", cookie=None)
    assert answer.status == 303
    assert answer.headers["location"] == "/?run=a&run=b"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"fedloom-8765={TOKEN};")
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {"httponly", "path=/", "samesite=lax"}


@pytest.mark.parametrize("token", ["", "x", "t" * 44, "%C3%A9" * 43, "t" * 42 + "%00"])
def test_a_wrong_token_is_refused(tmp_path: Path, token: str) -> None:
    answer = ask(tmp_path, "/", f"token={token}", cookie=None)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_the_redirection_stays_on_this_host(tmp_path: Path) -> None:
    assert ask(tmp_path, "//evil.example/x", f"token={TOKEN}").headers["location"] == "/evil.example/x"
    assert ask(tmp_path, "/\\evil.example", f"token={TOKEN}").headers["location"].startswith("/evil.example")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "localhost:8765"])
def test_the_names_of_this_machine_are_accepted(tmp_path: Path, host: str) -> None:
    port = host.partition(":")[2] or "80"
    assert ask(tmp_path, "/", host=host, cookie=f"fedloom-{port}={TOKEN}").status == 200


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost:", "[::1]:8765", "0.0.0.0"],
)
def test_a_foreign_host_is_refused(tmp_path: Path, host: str | None) -> None:
    assert ask(tmp_path, "/", host=host).status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_than_get_are_refused(tmp_path: Path, method: str) -> None:
    assert ask(tmp_path, "/", method=method).status == 405


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/", {}),
        ("/api/runs", {}),
        ("/nothing", {}),
        ("/", {"cookie": None}),
        ("/", {"host": "x"}),
        ("/", {"method": "POST"}),
    ],
)
def test_every_answer_has_the_headers(tmp_path: Path, path: str, options: dict[str, str]) -> None:
    headers = ask(tmp_path, path, **options).headers
    assert {name.lower(): value for name, value in HEADERS.items()}.items() <= headers.items()
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/static/../page.html",
        "/static/../../server/record/folder.py",
        "/static//etc/passwd",
        "/api/runs/..",
        "/api/runs/../r1/examples",
        "/api/runs/.hidden",
        "/api/runs/r1/config.toml",
        "/api/runs/r1%2F..%2Fr1",
        "/runs/r1/model.safetensors",
        "/api/runs/r1\0",
    ],
)
def test_traversals_find_nothing(tmp_path: Path, path: str) -> None:
    write_run(tmp_path, "r1")
    assert ask(tmp_path, path).status == 404


def test_the_token_is_stored_for_its_owner_only_and_used_again(tmp_path: Path) -> None:
    path = tmp_path / "ui" / "token"
    token = stored_token(path)
    assert len(token) == 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert stored_token(path) == token


def test_a_readable_damaged_or_linked_token_is_replaced(tmp_path: Path) -> None:
    path, other = tmp_path / "token", tmp_path / "other"
    token = stored_token(path)
    path.chmod(0o644)
    assert stored_token(path) != token
    path.write_bytes(b"\xff short")
    token = stored_token(path)
    assert len(token) == 43
    path.rename(other)
    path.symlink_to(other)
    assert stored_token(path) != token
    assert not path.is_symlink()
    assert other.read_text() == token
    path.unlink()
    os.mkfifo(path, 0o600)
    assert len(stored_token(path)) == 43


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
