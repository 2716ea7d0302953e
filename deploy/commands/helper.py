"""`fedloom helper`: a node without data that sums the masks of secure sums."""

from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o


def helper(
    server: Annotated[str, typer.Option(metavar="HOST:PORT", help="Help in runs of this federation's server.")] = "",
    ca: Annotated[
        Path | None, typer.Option(help="Trust this certificate authority (ca.pem), from the server's owner.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="Identify this helper by this private key (see `fedloom keys node`).")
    ] = None,
    name: Annotated[str, typer.Option(help="Set the public name; default: from the key.")] = "",
    state_dir: Annotated[Path, typer.Option(help="Store this helper's keys and opened sums here.")] = o.STATE
    / "helper",
    patience: Annotated[
        float, typer.Option(min=0, help="Keep asking for so many seconds while the server has not admitted the key.")
    ] = 600.0,
    forget: Annotated[
        float,
        typer.Option(metavar="DAYS", min=1, help="Delete the keys of a run after so many days without a message."),
    ] = 30.0,
    most_numbers: Annotated[int, typer.Option(min=1, help="Refuse vectors of more numbers.")] = 4_000_000,
    fingerprint: Annotated[
        bool,
        typer.Option("--fingerprint", help="Print the fingerprint of --key, which owners of clients pin, and exit."),
    ] = False,
) -> None:
    """Help clients to hide their updates in sums.

    A helper holds no data. It receives sealed masks of clients and releases one sum of masks for each round, with its own noise
    added. The server needs the answers of all helpers to learn the sum of the clients' updates. Its log has one line for each
    sum. SIGTERM and Ctrl-C leave cleanly; while the server is away, the helper waits.

    Helpers should be run by owners who do not collude with the server's owner. Owners of clients pin a helper by its
    fingerprint. One state folder belongs to one helper; a copy from a backup is refused.
    """
    from deploy.cli.output import say
    from deploy.keys.nodes import load_private_key

    if key is None:
        raise ConfigError("--key is missing; create one with fedloom keys node PATH")
    identity = load_private_key(key)
    if fingerprint:
        from common import node_names as node_keys

        say(node_keys.fingerprint(identity.public_key()))
        return
    if not server:
        raise ConfigError("--server is missing; give the HOST:PORT that clients of the federation join")
    if ca is None:
        raise ConfigError("--ca is missing; give the ca.pem of the server's owner")
    from deploy.federation.helper import serve_sums

    serve_sums(server, ca, identity, name, state_dir, patience=patience, forget=forget, most_numbers=most_numbers)
