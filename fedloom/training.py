"""Training from Python."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from common.options import Scalar
from deploy.cli.options import RunRequest, TrainingData
from deploy.cli.output import silence
from deploy.federation.here import Here, train_here
from deploy.federation.runs import runs_folder
from deploy.federation.watch import finish
from fedloom.arguments import Data, pick, refuse_further, stored
from fedloom.runs import Run, round_row
from server.record.events import Event, RoundEvent
from server.record.folder import RunDirectory

OnRound = Callable[[dict[str, Any]], object]
"""Function of one round's row, as in `Run.rounds`."""


def simulate(
    task: str = "",
    *,
    data: Data = "demo",
    method: str = "",
    rounds: int | None = None,
    seed: int | None = None,
    epsilon: float | None = None,
    clients: int | None = None,
    alone: bool = False,
    examples: bool = False,
    settings: Mapping[str, Scalar] | None = None,
    on_round: OnRound | None = None,
    progress: bool = False,
    **options: Any,
) -> Run:
    """Train in this process, as `fedloom simulate` does.

    The run's folder is below `$FEDLOOM_RUNS` (default: runs). Equal arguments give equal models, except with noise. Demo data
    have one client per home, visitor or sensor here, where `fedloom.up` shares them among a few processes.

    Args:
        task: Name of the task; default: the method's own, or rules.
        data: Data file or folder, or a table of pandas, polars or Arrow; "demo" generates embedded data.
        method: Name of the method; default: the task's own.
        rounds: Number of rounds; default: the task's own or 30.
        seed: Seed of every random choice but privacy noise; default: 0.
        epsilon: ε of the whole run; None trains without noise.
        clients: Number of clients; None: one per unit of data.
        alone: True compares with clients alone too, as the command line does without `--no-alone`.
        examples: True stores examples of answers for your own data too, as generated data always have them.
        settings: Further options by their keys, such as {"training.lr": 0.01}.
        on_round: Function that receives each round's row while the run continues.
        progress: True prints notes and a line per round on stderr.
        options: Any other option of `fedloom simulate`, with underscores, such as `columns={"user": "Customer no."}`,
            `dates="dmy"`, `test="later.csv"`, `resume="ID"`.

    Raises:
        ConfigError: An option is unknown, mistyped or contradicts another.
        DataError: The data cannot be read.
        RunError: The run failed.
    """
    failures: list[Exception] = []
    given = {"task": task, "method": method, "rounds": rounds, "seed": seed, "epsilon": epsilon, **options}

    def report(event: Event) -> None:
        if isinstance(event, RoundEvent) and on_round and not failures:
            try:
                on_round(round_row(event))
            except Exception as error:  # raised again in the caller's thread
                failures.append(error)

    with _plain_torch(), silence(not progress), stored(data, trains=True) as path:
        request, rest = pick(RunRequest, {"sets": settings or None, **given})
        source, rest = pick(TrainingData, {"data": path, **rest})
        how, rest = pick(Here, {"clients": clients, "alone": alone, **rest})
        refuse_further(
            rest, "simulate", [field.name for kind in (RunRequest, TrainingData, Here) for field in fields(kind)]
        )
        result = train_here(request, source, how, report)
        if failures:
            raise failures[0]
        finish(result, json_wanted=False, source=source, examples=examples)
    return Run(RunDirectory(runs_folder(), result.run))


@contextmanager
def _plain_torch() -> Iterator[None]:
    """Train as the command does, on one thread, with what a notebook has changed in PyTorch and NumPy set aside.

    More threads would change the rounding.
    """
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    try:
        plain = np.errstate(all="warn", under="ignore")
        with torch.inference_mode(mode=False), torch.enable_grad(), torch.device("cpu"), plain:
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
