"""`fedloom door`: another door of a server, on a machine of its own."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o


def door(
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help="Serve clients of the server at this address.")],
    ca: Annotated[Path, typer.Option(help="Trust this certificate authority (ca.pem), from the server's owner.")],
    host: Annotated[str, typer.Option(help="Listen on this address; 0.0.0.0 for all.")] = "0.0.0.0",
    port: o.Port = 9092,
    state_dir: Annotated[Path, typer.Option(help="Store this door's key here.")] = o.STATE / "door",
) -> None:
    """Serve a server's clients from another machine.

    Clients join here as they join the server. The door passes their messages on by one connection and stores none, but it sees
    them. It creates its key and prints the command by which the server's owner admits it, for the host name or address that
    clients use. `fedloom nodes revoke` ends it. SIGTERM and Ctrl-C close it, and its clients wait until it is back.
    """
    from client.node.failures import Server
    from common.node_names import to_word
    from deploy.cli.output import note
    from deploy.files import read_file
    from deploy.keys.nodes import load_private_key, make_node_key
    from deploy.superlink.far_door import run_door
    from deploy.superlink.superlink import require_free_port

    require_free_port(host, port, "--port")
    if not (file := state_dir / "door.key").exists():
        make_node_key(file)
    key = load_private_key(file)
    note(f"the server's owner admits this door by\n  fedloom nodes add {to_word(key.public_key())} --door HOST")
    run_door(
        Server(superlink, read_file(ca), key, name="door"), f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    )
