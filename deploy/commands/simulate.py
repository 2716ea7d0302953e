"""`fedloom simulate`: training in one process."""

from typing import Annotated

import typer

from deploy.cli import options as o
from deploy.cli.signature import spread


@spread
def simulate(
    request: o.RunRequest,
    source: o.DataRequest,
    test: o.Test = "",
    clients: Annotated[
        int | None,
        typer.Option(min=0, help="Partition the data among so many clients; default: 0, one client a unit of data."),
    ] = None,
    catalogue: o.Catalogue = None,
    together: Annotated[
        int, typer.Option(min=0, help="Train so many clients stacked; 0 chooses, 1 gives the bits of real clients.")
    ] = 0,
    json: o.Json = False,
) -> None:
    """Train in one process, without sockets.

    Runs the same server and client code as `fedloom up`, deterministically, for thousands of clients.
    """
    from functools import partial

    import torch

    from deploy.cli.output import console
    from deploy.commands.launch import finish
    from deploy.commands.runs import runs_folder
    from deploy.commands.simulated_clients import prepare_simulation
    from deploy.simulation import simulate_clients
    from deploy.watch import watch_here
    from server.artifacts import RunDirectory

    torch.set_num_threads(1)  # the tensors are small: more threads take longer and change the rounding
    config, parts = prepare_simulation(request, source, test, clients, catalogue)
    runs = runs_folder()
    work = partial(simulate_clients, config, parts, runs, together=together)
    finish(watch_here(work, RunDirectory(runs, config.run_id), console), json)
