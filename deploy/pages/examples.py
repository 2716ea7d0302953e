"""Examples of a finished run's answers, stored in its folder for the live page."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import islice
from typing import Any

from common.errors import FedloomError
from common.options import Scalar
from deploy.cli.options import STATE, DataRequest
from deploy.commands.recommend import open_run
from deploy.federation.runs import origin_of
from deploy.files import write_file
from deploy.tasks.registry import DEPLOY_TASKS
from deploy.tasks.spec import Answers, DeployTask, Example, TrainedRun
from server.record.folder import RunDirectory
from server.record.result import Result

FILE = "examples.json"
MAX_EXAMPLES = 3  # units of data
TOP = 5  # answers of each


def add_examples(
    result: Result, folder: RunDirectory, source: DataRequest | None, note: Callable[[str], None], *, own: bool
) -> None:
    """Store examples of a completed run, and its clusters in words, in a file of mode 0600.

    Args:
        result: Result of the run.
        folder: Folder of the run.
        source: Data of this command; None if the data are at joining clients.
        note: Function that prints a line; called if examples cannot be made.
        own: True if examples of own data are wanted; those of generated data always are.
    """
    if result.status != "completed" or result.task not in DEPLOY_TASKS:
        return
    task, origin = DEPLOY_TASKS[result.task], origin_of(folder.path)
    if origin and origin.data:
        source, own = DataRequest(data=origin.data), True
    try:
        checkpoint = folder.checkpoints.load_latest() if task.clusters else None
        words = task.clusters(checkpoint) if task.clusters and checkpoint else {}
        found: Sequence[Example] = ()
        if source and own and (task.examples or task.everybody):
            run = open_run(folder, result.task, source, STATE)
            found = make_examples(task, replace(run, read=cache(run.read)))
        if found or words:
            content = {"examples": [as_json(one) for one in found], "clusters": words}
            write_file(folder.path / FILE, json.dumps(content).encode(), mode=0o600, overwrite=True)
    except (FedloomError, OSError) as error:
        note(f"no examples: {error}")


def make_examples(task: DeployTask, run: TrainedRun) -> Sequence[Example]:
    """Return the task's own examples, or the answers to the first queries of `fedloom recommend --all`."""
    if task.examples:
        return task.examples(run)[:MAX_EXAMPLES]
    if not (task.answer and task.everybody):
        return ()
    queries = task.everybody(run, {option.name: "" for option in task.query})
    return [task.answer(run, query, TOP) for query in islice(queries, MAX_EXAMPLES)]


def as_json(example: Example) -> dict[str, Any]:
    """Return an example as the page reads it; answers become a table of texts."""
    if not isinstance(example, Answers):
        return asdict(example)
    rows = [
        [" ".join(_cell(row[key]) for key in keys).rstrip() for keys in example.columns.values()]
        for row in example.rows
    ]
    return {"title": example.title, "columns": list(example.columns), "rows": rows}


def _cell(value: Scalar) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
