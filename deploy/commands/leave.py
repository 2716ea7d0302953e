"""`fedloom leave`: clients of a state folder leave, and may ask the server to forget them."""

import shutil
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import ConfigError
from deploy.cli.options import STATE
from deploy.commands.status import StateFolder, state_folder

if TYPE_CHECKING:
    from client.owner.control import RunningClient

POLL_SECONDS = 0.1


def leave(
    state_dir: StateFolder = STATE,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Ask the server to forget the clients, and delete their state of all runs here."),
    ] = False,
    local: Annotated[
        bool, typer.Option("--local", help="With --forget: delete the state here without asking a server out of reach.")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, help="With --forget: wait so many seconds for the server's next request.")
    ] = 120.0,
) -> None:
    """Let the clients of a state folder leave after the work under way, like SIGTERM.

    They finish and send the current reply, since it has already cost privacy budget. Start `fedloom join` again to return.

    With --forget, each client answers the server's next request by asking to be forgotten, and leaves. Its state of all runs on
    this machine is deleted: models, private layers, replies that could be sent again. Privacy ledgers stay, since spent budget
    stays spent. The server's owner sees the request by `fedloom forget`, which also makes the runs again without the client. A
    receipt is written to the state folder.
    """
    from client.owner import control
    from deploy.cli.output import say

    if local and not forget:
        raise ConfigError("--local belongs to --forget; add --forget, or remove --local")
    folder = state_folder(state_dir)
    found = control.leave(folder, forgets=forget and not local)
    if not found and not local:
        how = "start fedloom join so that it can ask, or add --local" if forget else "give the one of `fedloom join`"
        raise ConfigError(f"no client runs in state folder {state_dir}; {how}")
    if not forget:
        say(f"leaving after the work under way: {_names(found)}")
        return
    _await_end(folder, found, wait)
    if not local:
        _require_delivered(folder, found, wait)
    _erase(folder, found)


def _names(found: Sequence["RunningClient"]) -> str:
    return ", ".join(f"{one.client} (process {one.pid})" for one in found)


def _await_end(folder: Path, found: Sequence["RunningClient"], seconds: float) -> None:
    """Wait until the clients have left, or the time is over."""
    from client.owner.control import running_clients

    end = time.monotonic() + seconds
    while any(one in found for one in running_clients(folder)) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)


def _require_delivered(folder: Path, found: Sequence["RunningClient"], seconds: float) -> None:
    """Check that the servers have received the requests to forget.

    Raises:
        ConfigError: One of them has not; its request is withdrawn, and nothing was deleted.
    """
    from client.owner.control import was_delivered, withdraw_request

    if missing := [one for one in found if not was_delivered(folder, one)]:
        for one in missing:
            withdraw_request(folder, one)
        raise ConfigError(
            f"{missing[0].server} sent no request to {_names(missing)} within {seconds:g} s, so nothing was asked and nothing"
            " deleted; try again while a run is in progress, or add --local and write to the server's owner"
        )


def _erase(folder: Path, found: Sequence["RunningClient"]) -> None:
    """Delete the state of the clients, and write the receipt."""
    from client.hub.state import FOLDER as HOSTED
    from client.owner.control import was_delivered, withdraw_request
    from client.owner.erasure import Forgetting, OwnerReceipt, delete_state, write_owner_receipt
    from common.text import count
    from deploy.cli.output import note, say

    requests = [Forgetting(one.client, one.server, was_delivered(folder, one)) for one in found]
    for one in found:
        withdraw_request(folder, one)
    deleted = delete_state(folder)
    shutil.rmtree(folder / HOSTED, ignore_errors=True)
    receipt = OwnerReceipt(datetime.now(UTC).isoformat(timespec="seconds"), requests, deleted)
    for request in requests:
        asked = "was asked" if request.delivered else "was not asked"
        note(
            f"{request.server} {asked} to forget {request.client}; its owner does so by fedloom forget {request.client}"
        )
    note(f"deleted the state of {count(sum(map(len, deleted.values())), 'run')}")
    for text in receipt.stays:
        note(f"stays: {text}")
    say(f"receipt {write_owner_receipt(folder, receipt)}")
