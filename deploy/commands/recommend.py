"""`fedloom recommend`: answers of a finished run's model."""

import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import ConfigError
from common.registry import postpone
from common.text import count, printable
from deploy.cli import options as o
from deploy.cli.options import list_runs
from deploy.cli.signature import spread, with_query
from deploy.tasks.registry import DEPLOY_TASKS, ask
from deploy.tasks.spec import Answers, DeployTask, TrainedRun

if TYPE_CHECKING:
    from server.record.folder import RunDirectory


@spread
@with_query
def recommend(
    query: Mapping[str, str],
    source: o.DataRequest,
    top: Annotated[int, typer.Option(min=1, help="Show so many answers.")] = 10,
    run: Annotated[
        str,
        typer.Option(
            autocompletion=list_runs,
            help="Use this finished run, by name or folder; default: the newest that fits the options.",
        ),
    ] = "",
    state_dir: o.StateDir = o.STATE,
    everybody: Annotated[bool, typer.Option("--all", help="Recommend to everybody in the data.")] = False,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORM", help="Print a table, csv, json or yaml (Home Assistant); default: table."
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(help="Write a row per answer to this file (.csv, .json or .yaml), for its owner only."),
    ] = None,
    checkpoint: o.Checkpoint = "",
    json: o.AsJson = False,
) -> None:
    """Recommend by the model of a finished run.

    Shows rules to add to a home, next items of a session, products not rated yet, or items that go with an item, best first.
    Nothing leaves this machine.
    """
    from deploy.cli.output import note
    from deploy.pages import answers as formats
    from deploy.serving.models import open_run

    postpone("torch")  # a model of sums answers without it
    chosen = formats.format_of(form, out, is_json=json)
    folder, task = find_answering(run, {name for name, value in query.items() if value})
    trained = open_run(folder, task.name, source, state_dir, checkpoint)
    answers = ask(task, trained, queries_of_all(task, trained, query) if everybody else [query], top)
    for line in dict.fromkeys(line for one in answers for line in one.notes):
        note(f"{trained.data}: {line}")
    if chosen == "table":
        _print_tables(answers, f"{trained.name} ({trained.about})")
        return
    if chosen == "yaml":
        _write(formats.to_yaml(task, answers, trained.name), out, "the answers")
        return
    rows = formats.rounded(answers[0]) if chosen == "json" and not everybody else list(formats.batch_rows(answers))
    text = formats.to_csv(rows) if chosen == "csv" else formats.to_json(rows)
    _write(text, out, count(len(rows), "recommendation"))


def _write(text: str, out: Path | None, what: str) -> None:
    """Print a text, or write it to a file for its owner only."""
    from deploy.cli.output import note
    from deploy.pages.answers import write_answers

    if out is None:
        sys.stdout.write(text)
        return
    write_answers(out, text)
    note(f"{what} written to {out}")


def queries_of_all(task: DeployTask, trained: TrainedRun, query: Mapping[str, str]) -> Iterable[Mapping[str, str]]:
    """Return the query of every unit of the data.

    Raises:
        ConfigError: The task has no batches, or `--user` names one unit.
    """
    if task.everybody is None:
        raise ConfigError(f"--all does not apply to task {task.name}; remove it")
    if query.get("user"):
        raise ConfigError(f"--all contradicts --user {query['user']}; remove one of them")
    return task.everybody(trained, query)


def _print_tables(batch: Sequence[Answers], run: str) -> None:
    from deploy.cli.output import out, say
    from deploy.pages.answers import to_table

    for answers in batch:
        say(f"{printable(answers.title)}, by run {run}")
        if answers.rows:
            out.print(to_table(answers))
        else:
            say(answers.empty or f"there is no further {answers.noun} to recommend")


def find_answering(run: str, given: Set[str]) -> tuple["RunDirectory", DeployTask]:
    """Return the named run, or the newest whose task understands every given option, and its task.

    Raises:
        ConfigError: There is no such run.
    """
    from common.config.parse import parse
    from deploy.federation.runs import find_run, newest, stored_options

    tasks = {task.name: task for task in DEPLOY_TASKS.usable() if task.answer}
    fitting = [name for name, task in tasks.items() if given <= {option.name for option in task.query}]
    folder = find_run(run) if run else newest(fitting or list(tasks))
    name, task = folder.path.name, parse(stored_options(folder)).task
    if task not in tasks:
        raise ConfigError(f"run '{name}' is of task {task}, which answers no queries{_other_commands(task)}")
    if task not in fitting:
        usable = [option.name for option in tasks[task].query]
        unusable = sorted(given - set(usable))[0]
        remedy = f"use {' or '.join(f'--{one}' for one in usable[:2])}" if usable else "remove it"
        raise ConfigError(f"--{unusable} does not apply to run '{name}' (task {task}); {remedy}")
    return folder, tasks[task]


def _other_commands(task: str) -> str:
    commands = DEPLOY_TASKS[task].commands if task in DEPLOY_TASKS else ()
    return f"; use {' or '.join(f'fedloom {ref.name}' for ref in commands)}" if commands else "; name another run"
