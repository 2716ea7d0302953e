"""Signatures of commands, assembled from shared options and those of the tasks."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from common.text import one_name
from deploy.tasks.registry import DEPLOY_TASKS
from deploy.tasks.spec import DeployTask, QueryOption

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of each dataclass among its parameters as options of their own."""
    declared = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in declared if is_dataclass(p.annotation)}

    def run(**given: Any) -> None:
        made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**made, **given)

    parameters = [q for p in declared for q in (_fields(groups[p.name]) if p.name in groups else [p])]
    return with_parameters(run, parameters, command)


def with_parameters(
    run: Callable[..., None], parameters: Iterable[inspect.Parameter], described: Callable[..., None]
) -> Callable[..., None]:
    """Return the function under other parameters, and with the name and the help of another one."""
    run.__name__, run.__doc__ = described.__name__, described.__doc__
    signature = inspect.Signature([p.replace(kind=KEYWORD) for p in parameters])
    run.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect.signature, and so by Typer
    return run


def _fields(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [inspect.Parameter(f.name, KEYWORD, default=f.default, annotation=hints[f.name]) for f in fields(kind)]


OptionsOf = Callable[[DeployTask], Iterable[QueryOption]]


def with_query(command: Callable[..., None], of: OptionsOf = lambda task: task.query) -> Callable[..., None]:
    """Return the command with an option for each option of a task in place of its parameter `query`.

    Args:
        command: Command to change.
        of: Options of a task; by default those of `fedloom recommend`.
    """
    options = _by_name(of)

    def run(**given: Any) -> None:
        command(query={name: one_name(given.pop(_identifier(name))) for name in options}, **given)

    declared = inspect.signature(command).parameters.values()
    parameters = [*_parameters(options), *(p for p in declared if p.name != "query")]
    return with_parameters(run, parameters, command)


def _by_name(of: OptionsOf) -> dict[str, dict[str, QueryOption]]:
    """Return, for each name, the option by task."""
    options: dict[str, dict[str, QueryOption]] = {}
    for task in DEPLOY_TASKS.usable():
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
