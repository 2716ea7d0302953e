"""Training from Python."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.errors import RunError
from common.options import Scalar
from deploy.cli.options import DataRequest, RunRequest
from deploy.cli.output import console
from deploy.federation.local_clients import prepare_simulation
from deploy.federation.runs import runs_folder
from deploy.federation.watch import watch_here
from deploy.simulation.grid import simulate_clients
from fedloom.console import silence
from fedloom.runs import Run, round_row
from server.record.events import Event, RoundEvent
from server.record.folder import RunDirectory

OnRound = Callable[[dict[str, Any]], object]
"""Function of one round's row, as in `Run.rounds`."""


def simulate(
    task: str = "",
    *,
    data: str | Path = "demo",
    method: str = "",
    rounds: int | None = None,
    seed: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    clients: int = 0,
    together: int = 0,
    settings: Mapping[str, Scalar] | None = None,
    on_round: OnRound | None = None,
    progress: bool = False,
) -> Run:
    """Train in this process, as `fedloom simulate` does.

    The run's folder is below `$FEDLOOM_RUNS` (default: runs). Equal arguments give equal models, except with noise.

    Args:
        task: Name of the task; default: the method's own, or rules.
        data: Data file or folder; "demo" generates embedded data.
        method: Name of the method; default: the task's own.
        rounds: Number of rounds; default: the task's own or 30.
        seed: Seed of every random choice but privacy noise; default: 0.
        epsilon: ε of the whole run; None trains without noise.
        delta: δ of `epsilon`.
        clients: Number of clients; 0: one per unit of data.
        together: Number of clients that train stacked; 0 chooses, 1 gives the bits of real clients.
        settings: Further options by their keys, such as {"training.lr": 0.01}.
        on_round: Function that receives each round's row while the run continues.
        progress: True prints notes and a line per round on stderr.

    Raises:
        ConfigError: An option is unknown, mistyped or contradicts another.
        DataError: The data cannot be read.
        RunError: The run failed.
    """
    sets = [
        f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in (settings or {}).items()
    ]
    request = RunRequest(method, task, rounds, seed, epsilon, delta, sets)
    failures: list[Exception] = []

    def report(event: Event) -> None:
        if isinstance(event, RoundEvent) and on_round and not failures:
            try:
                on_round(round_row(event))
            except Exception as error:  # raised again in the caller's thread
                failures.append(error)

    with _one_thread(), silence(not progress):
        config, partitions = prepare_simulation(request, DataRequest(str(data)), "", clients, None)
        folder = RunDirectory(runs_folder(), config.run_id)
        work = partial(simulate_clients, config, partitions, runs_folder(), together=together)
        result = watch_here(work, folder, console, report)
    if failures:
        raise failures[0]
    if result.status != "completed":
        raise RunError(f"the run failed: {result.reason}")
    return Run(folder)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Train on one thread: the tensors are small, and more threads change the rounding."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
