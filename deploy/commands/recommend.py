"""`fedloom recommend`: answers of a finished run's model."""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import ConfigError
from common.options import Scalar
from deploy.cli import options as o
from deploy.cli.query import with_query
from deploy.cli.signature import spread
from deploy.tasks.registry import DEPLOY_TASKS, usable_tasks
from deploy.tasks.spec import Answers, DeployTask, TrainedRun

if TYPE_CHECKING:
    from rich.table import Table

    from server.artifacts import RunDirectory


@spread
@with_query
def recommend(
    query: Mapping[str, str],
    source: o.DataRequest,
    top: Annotated[int, typer.Option(min=1, help="Show so many answers.")] = 10,
    run: Annotated[
        str, typer.Option(help="Use this finished run, by name or folder; default: the newest that fits the options.")
    ] = "",
    state_dir: o.StateDir = o.STATE,
    json: o.AsJson = False,
) -> None:
    """Recommend by the model of a finished run.

    Shows rules to add to a home, next items of a session, products not rated yet, or items that go with an item, best first.
    Nothing leaves this machine.
    """
    from deploy.cli.output import note, out, print_object, say

    folder, task = find_answering(run, {name for name, value in query.items() if value})
    trained = open_run(folder, task.name, source, state_dir)
    assert task.answer is not None  # find_answering returns only tasks with an answer
    answers = task.answer(trained, query, top)
    for line in answers.notes:
        note(f"{source.data}: {line}")
    if json:
        print_object(answers.rows)
        return
    say(f"{answers.title}, by run {trained.name}")
    out.print(_table(answers) if answers.rows else f"there is no further {answers.noun} to recommend")


def find_answering(run: str, given: Set[str]) -> tuple["RunDirectory", DeployTask]:
    """Return the named run, or the newest whose task understands every given option, and its task.

    Raises:
        ConfigError: There is no such run.
    """
    from common.config.parse import parse
    from deploy.commands.runs import find_run, newest, stored_options

    tasks = {task.name: task for task in usable_tasks() if task.answer}
    fitting = [name for name, task in tasks.items() if given <= {option.name for option in task.query}]
    folder = find_run(run) if run else newest(fitting or list(tasks))
    name, task = folder.path.name, parse(stored_options(folder)).task
    if task not in tasks:
        raise ConfigError(f"run '{name}' is of task {task}, which answers no queries{_other_commands(task)}")
    if task not in fitting:
        usable = [option.name for option in tasks[task].query]
        unusable = sorted(given - set(usable))[0]
        remedy = f"use {' or '.join(f'--{one}' for one in usable)}" if usable else "remove it"
        raise ConfigError(f"--{unusable} does not apply to run '{name}' (task {task}); {remedy}")
    return folder, tasks[task]


def open_run(folder: "RunDirectory", task: str, source: o.DataRequest, state_dir: Path) -> TrainedRun:
    """Return a finished run with its model, to be applied to the data."""
    from client.data.read import read_all, with_test
    from common.config.parse import parse
    from common.tasks.registry import read_vocabulary
    from deploy.commands.runs import stored_options
    from deploy.commands.stored_models import find_stored_model

    data, dialect = source.data, source.dialect
    name, vocabulary = folder.path.name, read_vocabulary(task, folder.catalogue())
    return TrainedRun(
        name=name,
        config=parse(stored_options(folder)),
        vocabulary=vocabulary,
        model=folder.load_model()[0],
        data=data,
        read=lambda test: read_all(task, with_test(task, data, test), vocabulary=vocabulary, dialect=dialect),
        find_stored=lambda client: find_stored_model(task, data, name, state_dir, client),
    )


def _other_commands(task: str) -> str:
    commands = DEPLOY_TASKS[task].commands if task in DEPLOY_TASKS else ()
    return f"; use {' or '.join(f'fedloom {ref.name}' for ref in commands)}" if commands else "; name another run"


def _table(answers: Answers) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table("", *answers.columns)
    for place, row in enumerate(answers.rows, start=1):
        cells = (" ".join(_cell(row[key]) for key in keys).rstrip() for keys in answers.columns.values())
        table.add_row(str(place), *map(Text, cells))
    return table


def _cell(value: Scalar) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
