"""`fedloom simulate`: training in one process."""

from typing import Annotated

import typer

from deploy.cli import options as o
from deploy.cli.signature import spread


@spread
def simulate(
    request: o.RunRequest,
    source: o.TrainingData,
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
    """Train in one process, without sockets.

    Runs the same server and client code as `fedloom up`, for thousands of clients. Equal seeds give equal runs, apart from
    privacy noise. A run continues with --resume as if it had not stopped.
    """
    import torch

    from client.training.comparison import Measured
    from common.config.parse import is_comparable
    from common.errors import ConfigError
    from deploy.cli.output import console
    from deploy.federation.compare import with_alone
    from deploy.federation.local_clients import prepare_simulation
    from deploy.federation.runs import removed_unless_started, runs_folder
    from deploy.federation.watch import finish, watch_here
    from deploy.simulation.state import KeptState, simulate_measured
    from deploy.simulation.workers import choose_workers
    from server.record.folder import RunDirectory
    from server.record.result import Result

    torch.set_num_threads(1)  # the tensors are small: more threads take longer and change the rounding
    if forget_state and not request.resume:
        raise ConfigError("--forget-state belongs to --resume")
    config, partitions = prepare_simulation(request, source, test, clients, catalogue)
    runs, state = runs_folder(), KeptState(forget_state, keep_state, snapshot_every, state_on_disk)
    measured_here: dict[str, Measured] = {}

    def work() -> Result:
        result, measured = simulate_measured(
            config, partitions, runs, together=together, state=state, workers=workers or choose_workers()
        )
        measured_here.update(measured)
        return result

    def compare(result: Result) -> Result:
        return with_alone(result, config, partitions, measured_here) if alone and is_comparable(config) else result

    with removed_unless_started(config.run_id):
        result = watch_here(work, RunDirectory(runs, config.run_id), console, after=compare)
        finish(result, json, source, examples=examples)
