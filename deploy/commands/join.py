"""`fedloom join`: a client with private data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o
from deploy.cli.signature import spread

NEWCOMER = "newcomer"
"""Default name of a client that adapts a model; its state folder depends on its data."""


@dataclass(frozen=True)
class ServerRequest:
    """Server of a client, and the keys of both."""

    server: Annotated[str, typer.Option(metavar="HOST:PORT", help="Train with this federation's server.")] = ""
    ca: Annotated[
        Path | None, typer.Option(help="Trust this certificate authority (ca.pem), from the server's owner.")
    ] = None
    key: Annotated[
        Path | None, typer.Option(help="Identify this node by this private key (see `fedloom keys node`).")
    ] = None
    patience: Annotated[
        float, typer.Option(min=0, help="Keep asking for so many seconds while the server has not admitted the key.")
    ] = 600.0
    invite: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Join by this invitation (*.fedloom) of the server's owner.")
    ] = None
    code: Annotated[str, typer.Option(help="Join only if the invitation has this check code, read by its sender.")] = ""
    insecure: Annotated[bool, typer.Option(help="Join without TLS; for experiments on one machine.")] = False


@dataclass(frozen=True)
class ClientRequest:
    """Client with its private state."""

    task: Annotated[
        str, typer.Option(help="Read the data as data of this task; default: rules, or the task of RUN.")
    ] = ""
    shard: Annotated[
        str, typer.Option(metavar="k/K", help="Use the k-th (from 0) of K partitions of the data only.")
    ] = ""
    name: Annotated[
        str, typer.Option(help=f"Set the stable public name; default: from the key, or {NEWCOMER} with --adapt.")
    ] = ""
    state_dir: Annotated[Path, typer.Option(help="Store this client's private state here.")] = o.STATE
    ledgers: Annotated[
        Path | None, typer.Option(help="Store privacy ledgers in this folder instead of beside the data.")
    ] = None


@dataclass(frozen=True)
class PolicyRequest:
    """Limits set by the owner of the data."""

    policy: Annotated[
        Path | None, typer.Option(help="Apply this policy file (TOML): methods, tasks, noise, counts, steps.")
    ] = None
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", help="Take part in runs of this method only; repeatable; default: all methods."),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(help="Limit the privacy loss of the data to this ε over all runs; refuse runs without noise."),
    ] = None
    delta: Annotated[float | None, typer.Option(help="Set δ of --epsilon; default: the policy's, or 1e-5.")] = None


@spread
def join(
    at: ServerRequest,
    source: o.DataRequest,
    client: ClientRequest,
    limits: PolicyRequest,
    test: o.Test = "",
    clients: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Take part as a hub: with so many clients that share the data, 0: one for each unit; default: one client.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(min=1, help="Train a hub's clients in so many processes, with the same result for all numbers."),
    ] = 1,
    adapt: Annotated[
        str,
        typer.Option(
            metavar="RUN",
            help="Adapt the model of this finished run, by name or folder, to the data, without a server.",
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="With --adapt, print the metrics as JSON on stdout.")] = False,
) -> None:
    """Take part in training with this machine's private data.

    Answers a server elsewhere until stopped. The data stay here: the server can request training and metrics only, within the
    strictest of --policy, --method and --epsilon. SIGTERM and Ctrl-C leave cleanly; while the server is away, the client waits.

    With --invite, the file of the server's owner names the server. The command shows it with its check code and creates the
    client's key if there is none. It prints the command by which the server's owner admits the client.

    With --clients, or if the folder of the data holds clients.toml, this process is a hub, a node with several clients. Each
    has its own policy, ledger and name NAME/CLIENT. The server's owner registers the hub's key with their number.

    With --adapt, no server is needed. The client trains its private layers of a finished model, stores the model in its state
    and sends nothing.
    """
    if at.invite or at.code:
        from deploy.commands.acceptance import accept

        if at.invite is None or adapt:
            raise ConfigError(
                "--code needs --invite FILE" if at.code else "--invite contradicts --adapt; remove one of them"
            )
        at, client = accept(at, client)
    if bool(at.server) == bool(adapt):
        raise ConfigError(
            "give --invite FILE or --server HOST:PORT to train with others, or --adapt RUN to adapt a finished model"
        )
    if json and not adapt:
        raise ConfigError("--json needs --adapt; a client that trains with others has no result of its own")
    if at.server and not at.insecure and at.ca is None:
        raise ConfigError("--ca is missing; give the ca.pem of the server's owner, or --insecure without TLS")

    from deploy.commands.hub_clients import is_hub

    if is_hub(source.data, clients):
        if adapt or test or client.shard:
            raise ConfigError("a hub takes no --adapt, --test or --shard; join with one client, or remove them")
        from deploy.commands.hub import HubRequest, serve_hub

        serve_hub(at, HubRequest(source, client, limits, clients, workers))
        return
    if workers > 1:
        raise ConfigError("--workers needs a hub; add --clients K, or join with a folder that has a clients.toml")

    from deploy.commands.resident import open_client, serve_requests

    opened = open_client(at, source, client, limits, test, adapt)
    if adapt:
        from deploy.commands.adapt import adapt_to

        adapt_to(adapt, opened.settings, json=json)
    else:
        serve_requests(at, opened)
