"""Options of commands, assembled from those of the tasks."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer

from deploy.cli.signature import KEYWORD, with_parameters
from deploy.tasks.registry import usable_tasks
from deploy.tasks.spec import DeployTask, QueryOption

OptionsOf = Callable[[DeployTask], Iterable[QueryOption]]


def with_query(command: Callable[..., None], of: OptionsOf = lambda task: task.query) -> Callable[..., None]:
    """Return the command with an option for each option of a task in place of its parameter `query`.

    Args:
        command: Command to change.
        of: Options of a task; by default those of `fedloom recommend`.
    """
    options = _by_name(of)

    def run(**given: Any) -> None:
        command(query={name: given.pop(_identifier(name)) for name in options}, **given)

    own = inspect.signature(command).parameters.values()
    parameters = [*_parameters(options), *(p for p in own if p.name != "query")]
    return with_parameters(run, parameters, command)


def _by_name(of: OptionsOf) -> dict[str, dict[str, QueryOption]]:
    """Return, for each name, the option by task."""
    options: dict[str, dict[str, QueryOption]] = {}
    for task in usable_tasks():
        for option in of(task):
            options.setdefault(option.name, {})[task.name] = option
    return options


def _parameters(options: Mapping[str, Mapping[str, QueryOption]]) -> Iterator[inspect.Parameter]:
    for name, by_task in options.items():
        first = next(iter(by_task.values()))
        option = typer.Option(f"--{name}", metavar=first.metavar, help=_joined_help(by_task))
        yield inspect.Parameter(_identifier(name), KEYWORD, default="", annotation=Annotated[str, option])


def _joined_help(by_task: Mapping[str, QueryOption]) -> str:
    """Return each help text once, with its tasks."""
    tasks: dict[str, list[str]] = {}
    for task, option in by_task.items():
        tasks.setdefault(option.help.removesuffix("."), []).append(task)
    return " ".join(f"{text} ({', '.join(names)})." for text, names in tasks.items())


def _identifier(name: str) -> str:
    return name.replace("-", "_")
