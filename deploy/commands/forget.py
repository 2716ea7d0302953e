"""`fedloom forget`: a client is forgotten, and its runs are made again without it."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.cli import options as o

if TYPE_CHECKING:
    from server.record.folder import RunDirectory


def forget(
    client: Annotated[
        str,
        typer.Argument(
            metavar="CLIENT",
            help="Name of the client, or of a hub with all its clients; default: list the clients that ask to be forgotten.",
        ),
    ] = "",
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            autocompletion=o.list_runs,
            help="Forget it in this run only, and keep its key; repeatable; default: all runs.",
        ),
    ] = None,
    home: Annotated[Path, typer.Option(help="Remove the client's name and key from this folder of a server.")] = o.LOCAL
    / "server",
    later: Annotated[
        bool, typer.Option("--later", help="Withdraw the runs only; print the commands that make them again.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Forget without a question.")] = False,
    json: o.AsJson = False,
) -> None:
    """Forget a client of this server, in all its runs.

    Deletes the models, checkpoints and results of the runs in which it took part, and makes these runs again without it.
    Sums of statistics are asked again from the other clients, so the model equals one in which it never took part. A network
    is trained again, from the last checkpoint before the client's first round if there is one. Runs of `up` and `simulate` are
    made again at once, those of `serve` and `submit` once their clients are connected.

    Owners ask for this by `fedloom leave --forget`; without CLIENT, these requests are listed.

    The client's name is deleted, and its key refused. A receipt says what was done with each run.
    """
    from deploy.cli.output import note, print_object, say
    from deploy.federation.runs import runs_folder
    from deploy.federation.withdrawal import describe_entry, find_affected, forget_client, make_again, remake_command

    if not client:
        _list(json=json)
        return
    affected = find_affected(client, runs or [], home)
    if not (yes or _agreed(client, affected)):
        say("nothing was forgotten")
        return
    path = forget_client(client, affected, None if runs else home)
    receipt = make_again(path, later=later)
    for entry in receipt.runs:
        note(describe_entry(entry))
        if entry.replaced_by and entry.done == "withdrawn":
            note(f"make it again with {' '.join(remake_command(runs_folder() / entry.replaced_by))}")
    for text in receipt.stays:
        note(f"stays: {text}")
    if json:
        print_object({**asdict(receipt), "file": str(path)})
    else:
        say(f"receipt {path}")


def _list(*, json: bool) -> None:
    """Print the clients that ask to be forgotten."""
    from common.text import printable
    from deploy.cli.output import print_object, say
    from deploy.federation.withdrawal import list_requests

    asking = list_requests()
    if json:
        print_object([{"client": name, "runs": runs} for name, runs in asking.items()])
        return
    for name, runs in asking.items():
        say(
            f"{printable(name, 80)} asks to be forgotten (runs {', '.join(runs)}); fedloom forget {printable(name, 80)}"
        )
    if not asking:
        say("no client asks to be forgotten")


def _agreed(client: str, affected: Sequence["RunDirectory"]) -> bool:
    """Ask whether to forget the client."""
    from common.text import count, printable
    from deploy.cli.output import is_confirmed

    cost = ": noise costs the other clients its ε again"
    lines = [r.path.name + cost * (r.config().get("privacy.unit", "none") != "none") for r in affected]
    question = f"delete {count(len(affected), 'run')} with '{printable(client, 80)}' and make them again without it"
    return is_confirmed("forgetting a client", lines, question)
