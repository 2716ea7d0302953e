"""`fedloom serve`: the server of a federation."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o
from deploy.cli.signature import spread

WAIT_SECONDS = 86_400.0
"""Seconds that `serve` waits for its clients; their owners exchange keys first."""


@spread
def serve(
    request: o.RunRequest,
    clients: o.Clients = None,
    catalogue: o.SharedCatalogue = None,
    host: Annotated[str, typer.Option(help="Listen on this address; 0.0.0.0 for all.")] = "0.0.0.0",
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Let clients reach this machine by this host name or address; repeatable."),
    ] = None,
    home: Annotated[
        Path, typer.Option(help="Use the certificates of this folder, and its nodes/*.pub: keys of clients.")
    ] = o.LOCAL / "server",
    port: o.Port = 9092,
    control_port: o.ControlPort = 8000,
    json: o.Json = False,
) -> None:
    """Serve a run to clients on other machines.

    Waits for the clients, trains with them and writes the result. Clients need ca.pem of --home (public), and their public
    keys belong into its folder nodes/; `fedloom keys` makes both. Clients have a day to join before the first round;
    --set federation.wait=SECONDS changes that.
    """
    from common.text import count
    from deploy import federation
    from deploy.cli.output import console
    from deploy.commands.launch import finish, record_remote_launch, superlink_of, with_catalogue
    from deploy.commands.request import resolve
    from deploy.commands.runs import runs_folder
    from deploy.processes import Processes

    new = not request.resume
    decided = {
        "federation.min-clients": clients or (2 if new else None),
        "federation.wait": WAIT_SECONDS if new else None,
    }
    config, home = with_catalogue(resolve(request, decided), catalogue), home.resolve()
    order = federation.Order(config, runs_folder(), nodes=home / "nodes")
    record_remote_launch("serve", config)
    keys = count(len(list((home / "nodes").glob("*.pub"))), "registered key")
    superlink = superlink_of(home, federation.ensure_certificates(home, names or []), port, control_port, host)
    console.print(
        f"run [bold]{config.run_id}[/]: serving on {host}:{port}, {keys}, CA {home / 'ca.pem'}; waits for"
        f" {count(config.federation.min_clients, 'client')}; admissions and refusals: {superlink.log}",
        soft_wrap=True,
    )
    with Processes() as processes:
        finish(federation.train(processes, superlink, order, console), json)
