"""`fedloom invite`: the invitation file for the owners of clients."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o

if TYPE_CHECKING:
    from common.config.run import RunConfig
    from common.tasks.vocabulary import Vocabulary

DEFAULT_PORT = 9092
"""Port of a server that has served no run yet."""

STDOUT = Path("-")


def invite(
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the invitation here; default: HOST.fedloom; - for stdout."),
    ] = None,
    server: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Invite to this address; default: from the server's certificate.")
    ] = "",
    name: Annotated[str, typer.Option(help="Name the federation; default: the server's host.")] = "",
    contact: Annotated[str, typer.Option(help="Say how to reach the server's owner.")] = "",
    home: Annotated[Path, typer.Option(help="Use the certificates and the run of this folder.")] = o.LOCAL / "server",
    method: o.Method = "",
    task: o.Task = "",
    rounds: o.Rounds = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    sets: o.Sets = None,
    catalogue: o.SharedCatalogue = None,
    json: o.AsJson = False,
) -> None:
    """Write the invitation that clients' owners give to `fedloom join --invite`.

    The invitation describes the run that `fedloom serve` serves or has served last; options describe another run. It holds no
    secret. Read the check code to every owner by another way than the file, such as the telephone.
    """
    from deploy.cli.output import note, print_object
    from deploy.federation.status import stored_order
    from deploy.files import read_file
    from deploy.keys.invitation import make_invitation

    order = stored_order(home)
    config = _config(o.RunRequest(method, task, rounds, None, epsilon, delta, sets), order[0] if order else None, home)
    address = _address(home, server, order[1] if order else DEFAULT_PORT)
    authority = read_file(home / "ca.pem").decode("ascii", "replace")
    invitation = make_invitation(config, _vocabulary(config, catalogue), address, authority, name, contact)
    out = out or Path(f"{invitation.host}.fedloom")
    if out == STDOUT:
        typer.echo(invitation.to_json())
    else:
        invitation.write(out)
        note(f"invitation {out}; give it to the owners of the clients")
    for line in invitation.lines():
        note(line)
    note("read the check code to each owner by another way, such as the telephone")
    if json and out != STDOUT:
        print_object({"file": str(out), "code": invitation.code, "server": invitation.server})


def _config(request: o.RunRequest, stored: "RunConfig | None", home: Path) -> "RunConfig":
    """Return the run that the options describe, or the stored one if there are none."""
    from deploy.federation.request import resolve

    if request != o.RunRequest():
        return resolve(request, {})
    if stored is None:
        raise ConfigError(
            f"no run is stored in {home}; start fedloom serve, or describe the run with --task and --rounds"
        )
    return stored


def _vocabulary(config: "RunConfig", path: Path | None) -> "Vocabulary":
    """Return the vocabulary of the file, or of the run."""
    from common.tasks.registry import demo_vocabulary
    from deploy.data.sources import read_catalogue

    path = path or (None if config.catalogue == "demo" else Path(config.catalogue))
    return read_catalogue(config.task, path) or demo_vocabulary(config.task)


def _address(home: Path, address: str, port: int) -> str:
    """Return the address for clients.

    Raises:
        ConfigError: The server's certificate is missing, or is not valid for the host.
    """
    from deploy.keys.certificates import LOCAL_HOSTS, Certificates, names_of, normalize_host
    from deploy.keys.invitation import check_address

    try:
        address = address and check_address(address)
    except ValueError as error:
        raise ConfigError(f"--server {address[:80]!r} {error}") from None
    files = Certificates(home)
    if not files.server.exists():
        raise ConfigError(f"{files.server} is missing; create it with fedloom keys server --name HOST")
    names = names_of(files)
    public = [name for name in names if name not in LOCAL_HOSTS]
    if not address and not public:
        raise ConfigError(
            f"{files.server} names this machine only; renew it with fedloom keys server --renew --name HOST"
        )
    host = address.rpartition(":")[0].strip("[]") or public[0]
    if normalize_host(host) not in names:
        valid = " ".join(f"--name {name}" for name in [*public, host])
        raise ConfigError(f"{files.server} is not valid for '{host}'; run fedloom keys server --renew {valid}")
    return address or f"{f'[{host}]' if ':' in host else host}:{port}"
