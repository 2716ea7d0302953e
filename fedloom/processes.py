"""Commands with processes of their own, from Python: `up`, `serve`, `join` and `sweep`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.options import Scalar
from deploy.cli.output import silence
from deploy.federation.apart import call, call_for_json
from deploy.federation.sweep import sweep as run_sweep
from fedloom.arguments import Data, as_words, in_python_words, stored
from fedloom.runs import Row, Run, load_run


def up(task: str = "", *, data: Data = "demo", progress: bool = False, **options: Any) -> Run:
    """Train with a whole federation on this machine, as `fedloom up` does: a server and client processes over TLS.

    Args:
        task: Name of the task; default: the method's own, or rules.
        data: Data file or folder, or a table of pandas, polars or Arrow; "demo" generates embedded data.
        progress: True prints what the command prints, on stderr.
        options: Options of `fedloom up`, with underscores, such as `rounds=10`, `epsilon=8`, `clients=3`,
            `settings={"training.lr": 0.01}`, `policy="policy.toml"`, `resume="ID"`.

    Raises:
        FedloomError: As the command line, of the class of its exit code.
    """
    with stored(data, trains=True) as path:
        words = ["up", *as_words({"task": task, "data": path, **options})]
        return load_run(call_for_json(words, report_to(progress))["run"])


def serve(task: str = "", *, progress: bool = False, **options: Any) -> Run:
    """Serve a run to clients on other machines until it ends, as `fedloom serve` does.

    Args:
        task: Name of the task; default: the method's own, or rules.
        progress: True prints what the command prints, on stderr.
        options: Options of `fedloom serve`, with underscores, such as `clients=3`, `run_id="first"`, `port=9092`.

    Raises:
        FedloomError: As the command line, of the class of its exit code.
    """
    with in_python_words():
        words = ["serve", *as_words({"task": task, **options})]
        return load_run(call_for_json(words, report_to(progress))["run"])


def join(*, data: Data, progress: bool = False, **options: Any) -> None:
    """Take part in the runs of a server until the process is ended, as `fedloom join` does.

    Args:
        data: Data file or folder, or a table of pandas, polars or Arrow, of which a private file stays in .fedloom/tables.
        progress: True prints what the command prints, on stderr.
        options: Options of `fedloom join`, with underscores, such as `invite="train.fedloom"`, `code="XXXX-…"`,
            `name="shop-3"`, `policy="policy.toml"`.

    Raises:
        FedloomError: As the command line, of the class of its exit code.
    """
    with stored(data, trains=True) as path:
        call(["join", *as_words({"data": path, **options})], report_to(progress))


def report_to(progress: bool) -> Callable[[str], object]:
    """Return the receiver of the lines of stderr."""
    return sys.stderr.write if progress else lambda line: None


def sweep(
    task: str = "",
    *,
    data: Data = "demo",
    seeds: Sequence[int] = (0, 1, 2),
    over: Mapping[str, Sequence[Scalar]] | None = None,
    jobs: int = 0,
    progress: bool = False,
    **options: Any,
) -> list[Row]:
    """Simulate over seeds and options, as `fedloom sweep` does.

    Args:
        task: Name of the task; default: the method's own, or rules.
        data: Data file or folder, or a table of pandas, polars or Arrow; "demo" generates embedded data.
        seeds: Seeds of each setting.
        over: Key of an option -> its values; several make a grid.
        jobs: Runs beside each other; 0: as many as cores and memory allow.
        progress: True prints how many runs there are, on stderr.
        options: Options of `fedloom simulate`, with underscores.

    Returns:
        One row per setting, best mean first: options, seeds, names of runs, metric, split, mean, half of its 95 % interval
        over seeds, and its comparison with the best one: `best mean`, `worse` or `no clear difference`.

    Raises:
        FedloomError: As the command line, of the class of its exit code.
    """
    with stored(data, trains=True) as path, silence(not progress):
        words = as_words({"task": task, "data": path, **options})
        return run_sweep(words, seeds, over or {}, jobs).rows()
