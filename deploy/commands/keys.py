"""`fedloom keys`: certificates and node keys."""

from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o
from deploy.cli.output import note, print_object

REMOVED = {"register": "add", "list": "list", "rotate": "rotate", "revoke": "revoke"}
"""Removed command -> its successor in `fedloom nodes`."""

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
    from deploy.keys.certificates import Certificates, make_authority, make_server_certificate

    files = Certificates(home)
    if not files.ca.exists():
        make_authority(home)
    if not renew and files.server.exists():
        raise ConfigError(f"{files.server} exists; set --renew for a new certificate under the same authority")
    files = make_server_certificate(home, names or [], overwrite=renew)
    note(f"server certificate {files.server}; give {files.ca} to the owner of every client")
    if json:
        print_object({"certificate": str(files.server), "ca": str(files.ca)})


@keys.command()
def node(
    path: Annotated[Path, typer.Argument(help="File of the private key, such as node.key.")], json: o.AsJson = False
) -> None:
    """Make a client's key, on the client's machine.

    Send PATH.pub (public) to the server's owner.
    """
    from common.node_names import fingerprint
    from deploy.keys.nodes import make_node_key, public_path

    if path.exists():
        raise ConfigError(f"{path} exists and identifies its client; name another file for another client")
    public = make_node_key(path)
    note(f"private key {path} stays here; send {public_path(path)} to the server's owner\n{fingerprint(public)}")
    if json:
        print_object({"private": str(path), "public": str(public_path(path)), "fingerprint": fingerprint(public)})


@keys.command()
def show(
    path: Annotated[Path, typer.Argument(help="File of a private key, or of its public half (*.pub).")],
    json: o.AsJson = False,
) -> None:
    """Show the fingerprint of a key.

    It identifies a node, such as a helper, and is compared by other means than the federation itself.
    """
    from common.node_names import fingerprint
    from deploy.cli.output import say
    from deploy.keys.nodes import load_private_key, load_public_key

    public = load_public_key(path) if path.suffix == ".pub" else load_private_key(path).public_key()
    if json:
        print_object({"fingerprint": fingerprint(public)})
    else:
        say(fingerprint(public))


def _refuse(context: typer.Context) -> None:
    raise ConfigError(
        f"fedloom keys {context.info_name} was removed in 0.2; use fedloom nodes {REMOVED[str(context.info_name)]}"
    )


for _name in REMOVED:
    keys.command(name=_name, hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(
        _refuse
    )
