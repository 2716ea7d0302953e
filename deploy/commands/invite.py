"""`fedloom invite`: the invitation file for the owners of clients."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o

if TYPE_CHECKING:
    from common.config.run import RunConfig
    from common.tasks.vocabulary import Vocabulary
    from deploy.keys.invitation import Invitation

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
    model: o.Model = "",
    rounds: o.Rounds = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    sets: o.Sets = None,
    catalogue: o.SharedCatalogue = None,
    helper: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHA256:…",
            help="Promise this helper, by the fingerprint of its key (fedloom keys show); repeatable.",
        ),
    ] = None,
    clients: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="Write an invitation that admits this client, once; repeatable."),
    ] = None,
    json: o.AsJson = False,
) -> None:
    """Write the invitation that clients' owners give to `fedloom join --invite`.

    The invitation describes the run that `fedloom serve` serves or has served last; options describe another run. Its terms are
    the most that clients do for this server: more needs another invitation. It holds no secret. Read the check code to every
    owner by another way than the file, such as the telephone.

    With --client, each client has an invitation of its own. Its one-time token admits the client under this name, without
    `fedloom nodes add`, within 14 days. It is secret until the client has joined; another one for the name ends it.
    """
    from common.config.parse import flatten, parse
    from deploy.cli.output import note, print_object
    from deploy.federation.request import name_vocabulary
    from deploy.federation.status import stored_order
    from deploy.files import read_file
    from deploy.keys.invitation import make_invitation

    order = stored_order(home)
    config = _config(
        o.RunRequest(method, task, model, rounds, None, epsilon, delta, sets), order[0] if order else None, home
    )
    config, catalogue = name_vocabulary(config, catalogue)
    address = _address(home, server, order[1] if order else DEFAULT_PORT)
    authority = read_file(home / "ca.pem").decode("ascii", "replace")
    helpers = helper or []
    if helpers:
        config = parse({**flatten(config), "privacy.trust": "helpers", "secure-sums.helpers": max(2, len(helpers))})
    invitation = make_invitation(config, _vocabulary(config, catalogue), address, authority, name, contact, helpers)
    written = _write(invitation, out, home / "nodes", clients or [])
    for line in invitation.lines():
        note(line)
    note("read the check code to each owner by another way, such as the telephone")
    if json and written:
        files = {"files": written} if clients else {"file": written[""]}
        print_object({**files, "code": invitation.code, "server": invitation.server})


def _write(invitation: "Invitation", out: Path | None, nodes: Path, clients: list[str]) -> dict[str, str]:
    """Write the invitation, or one for each client; return the files by client, none for stdout.

    Raises:
        ConfigError: A file exists, or a client cannot be invited.
    """
    from deploy.cli.output import note
    from deploy.keys.nodes import TOKEN_DAYS, make_token

    if out and len(clients) > 1:
        raise ConfigError("--out names one file; leave it out to invite several clients")
    written = dict[str, str]()
    for client in clients or [""]:
        file = out or Path(f"{invitation.host}{client and '-'}{client}.fedloom")
        if file != STDOUT and file.exists():  # before an earlier token of the client ends
            raise ConfigError(f"{file} exists; remove it or choose another path")
        token = make_token(nodes, client) if client else ""
        one = invitation.model_copy(update={"client": client, "token": token})
        if file == STDOUT:
            typer.echo(one.to_json())
            continue
        one.write(file)
        written[client] = str(file)
        admits = f" of {client} alone; it admits this client once, within {TOKEN_DAYS} days"
        note(f"invitation {file}; give it to the owner{admits if client else 's of the clients'}")
    return written


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


def _vocabulary(config: "RunConfig", path: Path | None) -> "Vocabulary | None":
    """Return the vocabulary of the file, or of the run; None if clients find it."""
    from common.tasks.registry import demo_vocabulary
    from common.tasks.vocabulary import FEDERATED
    from deploy.data.sources import read_catalogue

    if path is None and config.catalogue == FEDERATED:
        return None
    path = path or (None if config.catalogue == "demo" else Path(config.catalogue))
    return read_catalogue(config.task, path) or demo_vocabulary(config.task)


def _address(home: Path, address: str, port: int) -> str:
    """Return the address for clients.

    Raises:
        ConfigError: The server's certificate is missing, or no certificate is valid for the host.
    """
    from common.hosts import HERE, check_address
    from deploy.keys.certificates import Certificates, names_of, normalize_host
    from deploy.keys.nodes import DOORS

    try:
        address = address and check_address(address)
    except ValueError as error:
        raise ConfigError(f"--server {address[:80]!r} {error}") from None
    files = Certificates(home)
    if not files.server.exists():
        raise ConfigError(f"{files.server} is missing; create it with fedloom keys server --name HOST")
    names = names_of(files.server)
    at_doors = {name for file in (home / "nodes" / DOORS).glob("*.pem") for name in names_of(file)}
    public = [name for name in names if name not in HERE]
    if not address and not public:
        raise ConfigError(
            f"{files.server} names this machine only; renew it with fedloom keys server --renew --name HOST"
        )
    host = address.rpartition(":")[0].strip("[]") or public[0]
    if normalize_host(host) not in at_doors.union(names):
        valid = " ".join(f"--name {name}" for name in [*public, host])
        raise ConfigError(f"{files.server} is not valid for '{host}'; run fedloom keys server --renew {valid}")
    return address or f"{f'[{host}]' if ':' in host else host}:{port}"
