"""`fedloom pause`, `resume` and `leave`: the owner's control of the clients of a state folder."""

from pathlib import Path

from deploy.cli import options as o
from deploy.commands.status import StateFolder, state_folder


def pause(state_dir: StateFolder = o.STATE) -> None:
    """Let the clients of a state folder refuse all work until `fedloom resume`.

    A paused client stays connected. It answers training and evaluation at once with "paused by its owner", so that the other
    clients do not wait for it. Clients that start later are paused too. Work under way is finished and sent.
    """
    from client.owner import control
    from deploy.cli.output import say

    folder = state_folder(state_dir)
    control.pause(folder)
    say(f"paused: {_names(folder) or 'no client runs now; the next one starts paused'}")


def resume(state_dir: StateFolder = o.STATE) -> None:
    """End the pause of the clients of a state folder.

    To continue a run on the server, use `--resume` of the training commands.
    """
    from client.owner import control
    from deploy.cli.output import say

    folder = state_folder(state_dir)
    if control.resume(folder):
        say(f"resumed: {_names(folder) or 'no client runs now'}")
    else:
        say("no client of this state folder was paused")


def leave(state_dir: StateFolder = o.STATE) -> None:
    """Let the clients of a state folder leave after the work under way, like SIGTERM.

    They finish and send the current reply, since it has already cost privacy budget. Start `fedloom join` again to return.
    """
    from client.owner import control
    from common.errors import ConfigError
    from deploy.cli.output import say

    found = control.leave(state_folder(state_dir))
    if not found:
        raise ConfigError(f"no client runs in state folder {state_dir}; give the --state-dir of `fedloom join`")
    say(f"leaving after the work under way: {', '.join(f'{one.client} (process {one.pid})' for one in found)}")


def _names(folder: Path) -> str:
    from client.owner.control import running_clients

    return ", ".join(one.client for one in running_clients(folder))
