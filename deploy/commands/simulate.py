"""`fedloom simulate`: training without sockets."""

from typing import Annotated

import typer

from deploy.cli import options as o
from deploy.cli.signature import spread


@spread
def simulate(
    request: o.RunRequest,
    source: o.TrainingData,
    cluster: o.ClusterRequest,
    test: o.Test = "",
    clients: Annotated[
        int | None,
        typer.Option(min=0, help="Partition the data among so many clients; default: 0, one client a unit of data."),
    ] = None,
    catalogue: o.Catalogue = None,
    together: Annotated[
        int, typer.Option(min=0, help="Train so many clients stacked; 0 chooses, 1 gives the bits of real clients.")
    ] = 0,
    workers: Annotated[
        int,
        typer.Option(
            min=0, help="Processes in which thousands of clients train; 0 chooses, with the same result for all."
        ),
    ] = 0,
    device: o.Device = "cpu",
    alone: o.Alone = True,
    examples: o.Examples = False,
    forget_state: Annotated[
        bool, typer.Option("--forget-state", help="With --resume: start the clients' private state anew.")
    ] = False,
    keep_state: Annotated[
        bool,
        typer.Option("--keep-state", help="Keep the clients' private state of a finished run, for further rounds."),
    ] = False,
    snapshot_every: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Store the clients' private state after so many rounds; 0 never; default: often enough for 10% of the time.",
        ),
    ] = None,
    state_on_disk: Annotated[
        bool,
        typer.Option("--state-on-disk", help="Hold the private state of thousands of clients in files, not in memory."),
    ] = False,
    json: o.Json = False,
) -> None:
    """Train on this machine without sockets, or on a cluster of Ray.

    Runs the same server and client code as `fedloom up`, for thousands of clients. Equal seeds give equal runs, apart from
    privacy noise. A run continues with --resume as if it had not stopped.
    """
    import torch

    from deploy.federation.here import Here, train_here
    from deploy.federation.watch import finish

    torch.set_num_threads(1)  # the tensors are small: more threads take longer and change the rounding
    how = Here(
        test=test,
        clients=clients,
        catalogue=catalogue,
        together=together,
        workers=workers,
        device=device,
        alone=alone,
        forget_state=forget_state,
        keep_state=keep_state,
        snapshot_every=snapshot_every,
        state_on_disk=state_on_disk,
        **vars(cluster),
    )
    finish(train_here(request, source, how), json, source, examples=examples)
