"""`fedloom serve-model`: answers of an exported model on this machine."""

import ipaddress
import os
import secrets
import socket
from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o
from deploy.cli.signature import spread

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")
"""Names of this machine in the header `Host`."""

VARIABLE = "FEDLOOM_TOKEN"
TOKEN_FILE = o.LOCAL / "serve-model.token"
SHORTEST_TOKEN = 16
GRACE_SECONDS = 1


@spread
def serve_model(
    file: Annotated[Path, typer.Argument(metavar="FILE.onnx", help="File that `fedloom export-model` wrote.")],
    tables: o.TableRequest,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Answer at this port; 0 takes a free one.")] = 8766,
    data: Annotated[str, typer.Option(help="Answer for units of this data file or folder, by their names.")] = "",
    token: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Read the token from this private file, or make it; default: {TOKEN_FILE}, or ${VARIABLE}.",
        ),
    ] = None,
    no_token: Annotated[bool, typer.Option("--no-token", help="Answer without a token.")] = False,
    host: Annotated[
        str, typer.Option(help="Answer at this address of the machine; behind a proxy with TLS. Needs --token.")
    ] = LOOPBACK,
) -> None:
    """Answer requests by an exported model, on this machine only.

    POST /v1/recommend, or /v1/forecast for forecasters, answers; GET /v1/model returns the model card and /openapi.json the
    schema. Needs the extra `serving`, and not torch. Bodies of requests are not logged.
    """
    from deploy.cli.output import say
    from deploy.serving.load import open_model

    is_local = host in NAMES
    if not is_local and (no_token or not token):
        raise ConfigError(f"--host {host} lets other machines in; give --token FILE, without --no-token")
    word, token_place = ("", "") if no_token else read_token(token)
    model, serving, document = open_model(file, data, o.DataRequest(data or "demo", **vars(tables)).dialect)
    channel = _bind(host, port)
    say(f"model   {file}, run {document.run}, task {document.config.task}")
    say(f"listen  http://{host}:{channel.getsockname()[1]}/v1/{serving.route} (GET /v1/model, /healthz, /openapi.json)")
    say(f"token   {token_place}: send it as 'Authorization: Bearer TOKEN'" if token_place else "token   none needed")

    import uvicorn

    from deploy.serving.service import build_app

    hosts = NAMES if is_local else () if _is_wildcard(host) else (*NAMES, host)
    app = build_app(model, serving, document.card, token=word, hosts=hosts)
    config = uvicorn.Config(
        app, access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=GRACE_SECONDS
    )
    uvicorn.Server(config).run(sockets=[channel])


def read_token(path: Path | None) -> tuple[str, str]:
    """Return the token and its place: a named file, the variable, or a file that is made if missing.

    Raises:
        ConfigError: Others can read the file, or the token is too short.
    """
    if path is None and (word := os.environ.get(VARIABLE, "")):
        return _checked(word, f"${VARIABLE}"), f"${VARIABLE}"
    from deploy.files import read_file, write_file

    path = path or TOKEN_FILE
    if not path.exists():
        write_file(path, secrets.token_urlsafe(32).encode(), mode=0o600)
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"other users can read {path}; run chmod 600 {path}")
    return _checked(read_file(path).decode("utf-8", "replace").strip(), str(path)), str(path)


def _checked(word: str, source: str) -> str:
    if len(word) < SHORTEST_TOKEN or not word.isascii():
        raise ConfigError(
            f"the token of {source} is no text of {SHORTEST_TOKEN} or more ASCII characters; make it longer"
        )
    return word


def _bind(host: str, port: int) -> socket.socket:
    """Return the listening socket of an IPv4 or IPv6 address."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigError(
            f"cannot answer at {host}:{port} ({error.strerror}); choose another --port or --host"
        ) from None


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
