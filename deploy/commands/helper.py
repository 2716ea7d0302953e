"""`fedloom helper` and `members`: a node that sums the masks of secure sums, and whose masks they are."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli.options import STATE, AsJson
from deploy.commands.status import StateFolder, state_folder


def helper(
    server: Annotated[str, typer.Option(metavar="HOST:PORT", help="Help in runs of this federation's server.")] = "",
    ca: Annotated[
        Path | None, typer.Option(help="Trust this certificate authority (ca.pem), from the server's owner.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="Identify this helper by this private key (see `fedloom keys node`).")
    ] = None,
    name: Annotated[str, typer.Option(help="Set the public name; default: from the key.")] = "",
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
    fingerprint. The keys that open masks are in memory alone: a helper that starts again loses the open round.
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

    serve_sums(server, ca, identity, key, name, patience=patience, forget=forget, most_numbers=most_numbers)


def members(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run.")],
    state_dir: StateFolder = STATE,
    json: AsJson = False,
) -> None:
    """Show the members of a run's secure sums.

    Helpers open sums of these members alone. A server that invents clients must show their keys here. Compare the fingerprints
    with those that other owners see by `fedloom keys show`. The list only grows.
    """
    from client.secure.members import members_in
    from common.text import count, printable
    from deploy.cli.output import print_object, say

    found = members_in(state_folder(state_dir), run)
    if not found:
        raise ConfigError(
            f"no client of {state_dir} was shown members of run '{printable(run, 80)}'; see fedloom status"
        )
    if json:
        print_object({client: [asdict(one) for one in shown] for client, shown in found.items()})
        return
    for client, shown in found.items():
        say(f"{client}: {count(len(shown), 'member')} of run {printable(run, 80)}")
        for one in shown:
            say(f"  {one.identity}  {printable(one.name, 80)}")
