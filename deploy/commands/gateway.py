"""`fedloom gateway`: a server of clients that is one node of a server above."""

from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o


def gateway(
    server: Annotated[str, typer.Option(metavar="HOST:PORT", help="Take part in runs of this server above.")] = "",
    ca: Annotated[
        Path | None, typer.Option(help="Trust this certificate authority (ca.pem), from the owner of the server above.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="Identify this gateway by this private key (see `fedloom keys node`).")
    ] = None,
    name: Annotated[str, typer.Option(help="Set the public name, the first part of its clients' names.")] = "",
    clients: Annotated[int, typer.Option(min=1, help="Take part in a run once so many clients are here.")] = 1,
    patience: Annotated[
        float, typer.Option(min=0, help="Keep asking for so many seconds while the server has not admitted the key.")
    ] = 600.0,
    home: Annotated[
        Path, typer.Option(help="Use the certificates of this folder, and its nodes/*.pub: keys of clients.")
    ] = o.LOCAL / "gateway",
    addresses: Annotated[
        list[str] | None,
        typer.Option("--address", help="Let clients reach this machine by this host name or address; repeatable."),
    ] = None,
    host: Annotated[str, typer.Option(help="Listen on this address; 0.0.0.0 for all.")] = "0.0.0.0",
    port: o.Port = 9092,
    control_port: o.ControlPort = 8000,
) -> None:
    """Pass a server's requests on to clients that join here.

    To the server above it is a hub: its owner registers the key with the number of clients (`fedloom nodes add`). To the
    clients it is a server: `fedloom nodes add --home HOME` admits them, and they join HOST:PORT with HOME/ca.pem. Clients, hubs
    and further gateways may join, at most three gateways one behind the other. A gateway has no data and keeps no model. It
    adds up replies where the method needs sums alone. SIGTERM and Ctrl-C leave cleanly; after a restart it joins again.

    The operator of a gateway sees what its clients send to the server. Runs with helpers refuse gateways.
    """
    if not server:
        raise ConfigError("--server is missing; give the HOST:PORT of the server above")
    if ca is None:
        raise ConfigError("--ca is missing; give the ca.pem of the owner of the server above")
    if key is None:
        raise ConfigError("--key is missing; create one with fedloom keys node PATH")
    from deploy.commands.gateway_node import GatewayNode, serve_gateway
    from deploy.commands.join import ServerRequest

    above = ServerRequest(server=server, ca=ca, key=key, patience=patience)
    serve_gateway(GatewayNode(above, ca, key, name, clients, home, addresses or [], host, port, control_port))
