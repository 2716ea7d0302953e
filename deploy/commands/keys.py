"""`fedloom keys`: certificates and node keys."""

from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o
from deploy.cli.output import console, print_object
from deploy.commands.nodes import list_all, revoke, rotate

keys = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    suggest_commands=False,
    help="Make certificates and node keys.\n\nA private key is made on the machine that uses it and never leaves it.",
)

Home = Annotated[Path, typer.Option(help="Use this folder as the server's.")]


@keys.command()
def server(
    home: Home = o.LOCAL / "server",
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Let clients reach the server by this host name or address; repeatable."),
    ] = None,
    renew: Annotated[bool, typer.Option(help="Make a new server certificate under the same authority.")] = False,
    json: o.AsJson = False,
) -> None:
    """Make the certificate authority (once) and the server's certificate.

    Give ca.pem to the owner of every client.
    """
    from deploy.certificates import Certificates, make_authority, make_server_certificate

    files = Certificates(home)
    if not files.ca.exists():
        make_authority(home)
    if not renew and files.server.exists():
        raise ConfigError(f"{files.server} exists; set --renew for a new certificate under the same authority")
    files = make_server_certificate(home, names or [], overwrite=renew)
    console.print(f"server certificate {files.server}; give {files.ca} to the owner of every client")
    if json:
        print_object({"certificate": str(files.server), "ca": str(files.ca)})


@keys.command()
def node(
    path: Annotated[Path, typer.Argument(help="File of the private key, such as node.key.")], json: o.AsJson = False
) -> None:
    """Make a client's key, on the client's machine.

    Send PATH.pub (public) to the server's owner.
    """
    from common.node_keys import fingerprint
    from deploy.keys import make_node_key, public_path

    if path.exists():
        raise ConfigError(f"{path} exists and identifies its client; name another file for another client")
    public = make_node_key(path)
    console.print(
        f"private key {path} stays here; send {public_path(path)} to the server's owner\n{fingerprint(public)}"
    )
    if json:
        print_object({"private": str(path), "public": str(public_path(path)), "fingerprint": fingerprint(public)})


@keys.command()
def register(
    public_keys: Annotated[list[Path], typer.Argument(help="Clients' public keys (*.pub).")],
    name: Annotated[str, typer.Option(help="Bind this public name to the key; no other client can use it.")] = "",
    clients: Annotated[
        int, typer.Option(min=0, help="Let the key speak for so many clients of a hub; 0: as before, 1 for a new key.")
    ] = 0,
    home: Home = o.LOCAL / "server",
    json: o.AsJson = False,
) -> None:
    """Admit clients: copy their public keys to the folder of `fedloom serve`."""
    from common.node_keys import fingerprint
    from deploy.keys import load_public_key
    from deploy.nodes import add_key

    if name and len(public_keys) > 1:
        raise ConfigError("--name belongs to one key; register keys one by one")
    registered = []
    for path in public_keys:
        public = load_public_key(path)
        target = add_key(home / "nodes", public, name, clients)
        hub = f" as a hub of up to {clients} clients" if clients > 1 else ""
        console.print(f"registered {fingerprint(public)} from {path}{hub}")
        registered.append({"fingerprint": fingerprint(public), "file": str(target)})
    if json:
        print_object(registered)


@keys.command()
def show(
    path: Annotated[Path, typer.Argument(help="File of a private key, or of its public half (*.pub).")],
    json: o.AsJson = False,
) -> None:
    """Show the fingerprint of a key.

    It identifies a node, such as a helper, and is compared by other means than the federation itself.
    """
    from common.node_keys import fingerprint
    from deploy.cli.output import say
    from deploy.keys import load_private_key, load_public_key

    public = load_public_key(path) if path.suffix == ".pub" else load_private_key(path).public_key()
    if json:
        print_object({"fingerprint": fingerprint(public)})
    else:
        say(fingerprint(public))


keys.command(name="list")(list_all)
keys.command()(rotate)
keys.command()(revoke)
