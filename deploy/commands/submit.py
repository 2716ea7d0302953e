"""`fedloom submit`: a run on a SuperLink that already serves."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o
from deploy.cli.signature import spread


@spread
def submit(
    request: o.RunRequest,
    clients: o.Clients = None,
    catalogue: o.SharedCatalogue = None,
    control: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Use the SuperLink with this Control API.")
    ] = "127.0.0.1:8000",
    ca: Annotated[Path | None, typer.Option(help="Trust this certificate authority (ca.pem).")] = None,
    nodes: Annotated[Path | None, typer.Option(help="Admit the public keys (*.pub) of this folder.")] = None,
    work: Annotated[Path, typer.Option(help="Store this command's own files here.")] = o.LOCAL / "submit",
    json: o.Json = False,
) -> None:
    """Start a run on a SuperLink that already serves.

    Watches the run to its end. The SuperLink must write runs to the folder ($FEDLOOM_RUNS) from which this command reads them.
    """
    from deploy.cli.output import console
    from deploy.federation import start as federation
    from deploy.federation.launch import finish, record_remote_launch, removed_unless_started, with_catalogue
    from deploy.federation.processes import Processes
    from deploy.federation.request import resolve
    from deploy.federation.runs import runs_folder
    from deploy.superlink.control import Control
    from server.record.process import COMMAND, FOLDER, record_process

    resolved = resolve(request, {"federation.min-clients": clients}, {"federation.min-clients": 2})
    config = with_catalogue(resolved, catalogue)
    order = federation.Order(config, runs_folder(), nodes=nodes)
    superlink = Control(control, ca)
    record_remote_launch("submit", config)
    record_process(work.resolve() / FOLDER, COMMAND, run=config.run_id)
    with removed_unless_started(config.run_id), Processes() as processes:
        finish(federation.submit(processes, work.resolve(), superlink, order, console), json)
