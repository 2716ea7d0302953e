"""`fedloom nodes`: clients of this server, by their keys and names."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o

nodes = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    suggest_commands=False,
    help="Admit, list and revoke clients of this server.\n\nA running `fedloom serve` follows within seconds.",
)

Home = Annotated[Path, typer.Option(help="Use this folder as the server's.")]


@nodes.command(name="list")
def list_all(home: Home = o.LOCAL / "server", json: o.AsJson = False) -> None:
    """List the clients' keys with their names, registered ones first."""
    from deploy.cli.output import note, print_object, say
    from deploy.keys.nodes import DOORS, list_nodes

    entries = [*list_nodes(home / "nodes"), *list_nodes(home / "nodes" / DOORS)]
    if json:
        print_object([{**asdict(entry), "file": str(entry.file)} for entry in entries])
        return
    if not entries:
        note(f"no keys in {home / 'nodes'}; admit a client with fedloom nodes add")
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        speaks_for = f"  {entry.clients:,} clients" if entry.clients > 1 else ""
        door = "  door" if entry.file.with_suffix(".pem").exists() else ""
        key = f"{entry.fingerprint or entry.file}{speaks_for}{door}"
        say(f"{entry.name or '-':<{width}}  {entry.state:<10}  {entry.since}  {key}".lstrip())


@nodes.command()
def add(
    key: Annotated[str, typer.Argument(metavar="KEY|FILE", help="Public key fl1:… of the client, or its file *.pub.")],
    name: Annotated[str, typer.Option(help="Bind this public name to the key; no other client can use it.")] = "",
    clients: Annotated[
        int, typer.Option(min=0, help="Let the key speak for so many clients of a hub; 0: as before, 1 for a new key.")
    ] = 0,
    doors: Annotated[
        list[str] | None,
        typer.Option(
            "--door",
            metavar="HOST",
            help="Admit no client, but a door (`fedloom door`) at this host name or address; repeatable.",
        ),
    ] = None,
    home: Home = o.LOCAL / "server",
    json: o.AsJson = False,
) -> None:
    """Admit a client: register its public key.

    `fedloom join --invite` prints this command for the server's owner, and so does `fedloom door`. A revoked key is refused.
    """
    from common.node_names import fingerprint
    from deploy.cli.output import note, print_object
    from deploy.files import write_file
    from deploy.keys.certificates import Certificates, certify
    from deploy.keys.nodes import DOORS, add_key, read_key

    public = read_key(key)
    certificate = certify(Certificates(home), public, doors) if doors else b""
    file = add_key(home / "nodes" / (DOORS if doors else ""), public, name, clients)
    if doors:
        write_file(file.with_suffix(".pem"), certificate, overwrite=True)
    note(f"admitted {f'{name} by ' if name else ''}{fingerprint(public)}{' as a door' if doors else ''}")
    if json:
        print_object({"name": name, "fingerprint": fingerprint(public), "file": str(file)})


@nodes.command()
def rotate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the client.")],
    key: Annotated[str, typer.Argument(metavar="KEY|FILE", help="Its new public key fl1:…, or the key's file *.pub.")],
    home: Home = o.LOCAL / "server",
    json: o.AsJson = False,
) -> None:
    """Give a client's name to its new key, and revoke the old one."""
    from common.node_names import fingerprint
    from deploy.cli.output import note, print_object
    from deploy.keys.nodes import read_key, rotate_key

    public = read_key(key)
    file = rotate_key(home / "nodes", name, public)
    note(f"{name} has the key {fingerprint(public)} now; its old key is revoked")
    if json:
        print_object({"name": name, "fingerprint": fingerprint(public), "file": str(file)})


@nodes.command(name="accept-ledger")
def accept_ledger(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the client.")], home: Home = o.LOCAL / "server"
) -> None:
    """Accept a client's next privacy ledger, whatever it had before.

    Do this after its owner explained why the ledger is new or older, such as other data under the same key.
    """
    from deploy.cli.output import note
    from deploy.keys.nodes import accept_ledger as forget

    note(f"the next privacy ledger of {name}, {forget(home / 'nodes', name)}, is accepted")


@nodes.command()
def revoke(
    client: Annotated[str, typer.Argument(metavar="NAME|FINGERPRINT", help="Name or fingerprint of the client's key.")],
    home: Home = o.LOCAL / "server",
    json: o.AsJson = False,
) -> None:
    """Revoke the key of a client or a door; it stays refused.

    A running server removes the client within seconds. Its name becomes free for another key.
    """
    from deploy.cli.output import note, print_object
    from deploy.keys.nodes import DOORS, list_nodes, revoke_key

    doors = home / "nodes" / DOORS
    is_door = any(client in (one.name, one.fingerprint) for one in list_nodes(doors) if one.state == "registered")
    entry = revoke_key(doors if is_door else home / "nodes", client)
    note(
        f"revoked {entry.name or 'the key without a name'}, {entry.fingerprint}; a running server removes it within seconds"
    )
    if json:
        print_object({"name": entry.name, "fingerprint": entry.fingerprint})
