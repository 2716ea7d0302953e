"""`fedloom join`: a client with private data."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from client.device import choose_device, describe_device
from common.errors import ConfigError
from common.registry import postpone
from deploy.cli import options as o
from deploy.cli.options import ClientRequest, PolicyRequest, ServerRequest
from deploy.cli.output import note
from deploy.cli.signature import spread


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
    client's key if there is none. If the invitation does not admit the client, it prints the command for the server's owner.

    With --clients, or if the folder of the data holds clients.toml, this process is a hub, a node with several clients. Each
    has its own policy, ledger and name NAME/CLIENT. The server's owner registers the hub's key with their number.

    With --adapt, no server is needed. The client trains its private layers of a finished model, stores the model in its state
    and sends nothing.
    """
    postpone("httpx")  # Flower imports it, and a client does not use it
    client = replace(client, device=choose_device(client.device))
    if client.device != "cpu":
        note(f"training on {describe_device(client.device)}")
    if at.invite or at.code:
        from deploy.keys.invitation import accept

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

    if _is_hub(source.data, clients):
        if adapt or test or client.shard:
            raise ConfigError("a hub takes no --adapt, --test or --shard; join with one client, or remove them")
        from deploy.federation.hub import HubRequest, serve_hub

        serve_hub(at, HubRequest(source, client, limits, clients, workers))
        return
    if workers > 1:
        raise ConfigError("--workers needs a hub; add --clients K, or join with a folder that has a clients.toml")

    from deploy.federation.client import open_client, serve_requests

    opened = open_client(at, source, client, limits, test, adapt)
    if adapt:
        from deploy.federation.adaptation import adapt_to

        adapt_to(adapt, opened.settings, json=json)
    else:
        serve_requests(at, opened)


def _is_hub(data: str, clients: int | None) -> bool:
    """Return True if the client is a hub.

    Raises:
        ConfigError: The options contradict each other.
    """
    from client.data.dataset import is_demo

    file = Path(data) / o.CLIENTS_FILE
    has_file = not is_demo(data) and file.is_file()
    if has_file and clients is not None:
        raise ConfigError(f"{file} names the clients; remove --clients")
    return has_file or clients is not None
