"""Guard of the live page: token, host, method, headers."""

import os
from pathlib import Path

import pytest

from deploy.pages.live import HEADERS, stored_token
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
