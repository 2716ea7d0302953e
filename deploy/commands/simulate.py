"""`simulate`: training in one process."""

from typing import Annotated

import typer

from client.data.read import with_test
from common.text import count
from deploy.cli import options as o
from deploy.client_data import parts_of, read_catalogue, unit_names
from deploy.commands.launch import LOCAL, finish, speaking
from deploy.commands.resume import own_catalogue, own_dealing
from deploy.report.launch_record import remember
from deploy.watch import watch_here
from server.artifacts import RunDirectory
from server.events import Result


def simulate(
    method: o.Method = "",
    task: o.Task = "",
    data: o.Data = "demo",
    test: o.Test = "",
    columns: o.Columns = None,
    decimal: o.Decimal = "auto",
    dates: o.Dates = "auto",
    clients: Annotated[
        int | None,
        typer.Option(
            min=0, help="Clients to deal the data to; default: 0, one a home, one a visitor, or the run's own."
        ),
    ] = None,
    rounds: o.Rounds = None,
    seed: o.Seed = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    sets: o.Sets = None,
    catalogue: o.Catalogue = None,
    run_id: o.RunId = "",
    resume: o.Resume = "",
    together: Annotated[
        int, typer.Option(min=0, help="Clients trained stacked at a time; 0 chooses, 1 is bit-exact.")
    ] = 0,
    json: o.Json = False,
) -> None:
    """Train in this process, without sockets: the same server and clients, deterministic, for thousands of clients."""
    import torch  # takes seconds; other commands need not wait for it

    from deploy import simulation

    torch.set_num_threads(1)  # the tensors are small: threads cost more than they bring, and vary the rounding

    config = o.resolve(
        method,
        task,
        rounds,
        seed,
        run_id,
        resume,
        sets,
        privacy__epsilon=epsilon,
        privacy__delta=delta,
        federation__min_clients=1,
        federation__wait=1,
    )
    data, dialect = with_test(config.task, data, test), o.dialect_of(data, columns, decimal, dates)
    known = read_catalogue(config.task, catalogue)
    if resume:
        known = own_catalogue(RunDirectory(o.runs_folder(), resume), config.task, known)
        data, clients = own_dealing(RunDirectory(o.runs_folder(), resume), data, clients)
    parts = parts_of(config.task, data, known, clients or 0, dialect)
    if resume:
        o.console.print(
            "clients' private state ended with the earlier process: control variates and moments start anew"
        )
    else:
        config = speaking(config, data, parts, (LOCAL / "simulate" / config.run_id).resolve())
    o.console.print(f"run [bold]{config.run_id}[/]: {count(len(parts), 'client')} in this process", soft_wrap=True)
    runs = o.runs_folder()
    if not resume:
        remember(runs / config.run_id, "simulate", data, clients or 0, unit_names(config.task, parts))

    def work() -> Result:
        return simulation.simulate_clients(config, parts, runs, together=together)

    finish(watch_here(work, RunDirectory(runs, config.run_id), o.console), json)
