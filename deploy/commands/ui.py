"""`fedloom ui`: the live page of runs, in a browser on this machine."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o

PORT = 8765


def ui(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Serve the page on this port; 0 is any free one.")] = PORT,
    runs: Annotated[
        list[str] | None, typer.Option("--run", metavar="ID", help="Show this run first; repeatable, at most 8.")
    ] = None,
    wants_browser: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open a browser, or only print the address; default: by the session."),
    ] = None,
) -> None:
    """Show runs live in a browser.

    Serves one page to this machine only: running and finished runs, their curves, clients, privacy, planner and clusters. The
    printed address holds a token; who has it can see all runs of the folder. From another machine use an SSH tunnel:
    ssh -L 8765:127.0.0.1:8765 HOST.
    """
    from deploy.cli.output import console
    from deploy.federation.runs import runs_folder
    from deploy.pages.live import serve
    from deploy.pages.live_data import MAX_RUNS
    from server.record.folder import RunDirectory

    chosen = list(dict.fromkeys(runs or []))
    if len(chosen) > MAX_RUNS:
        raise typer.BadParameter(f"{len(chosen)} runs exceed {MAX_RUNS}; name fewer", param_hint="--run")
    for run in chosen:
        RunDirectory(runs_folder(), run).config()
    serve(runs_folder(), _token_file(), port, chosen, wants_browser, console)


@contextmanager
def page_of(run: str, *, wanted: bool, json: bool) -> Iterator[None]:
    """Serve the live page of a run while the block trains it, if wanted.

    A person at a terminal reads the page after the last round too, so there it stays until Ctrl-C. A script goes on at once.
    """
    if not wanted:
        yield
        return
    from deploy.cli.output import console
    from deploy.federation.runs import runs_folder
    from deploy.pages.live import live_page

    stays = sys.stdin.isatty() and sys.stderr.isatty() and not json
    with live_page(runs_folder(), _token_file(), run, console, stays=stays):
        yield


def _token_file() -> Path:
    return o.LOCAL.resolve() / "ui" / "token"
