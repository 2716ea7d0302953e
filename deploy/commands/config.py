"""`fedloom config`: the options of runs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from click import Command, Context
from typer.core import TyperGroup

from common.errors import ConfigError
from deploy.cli import options as o
from deploy.cli.options import list_keys, list_runs

if TYPE_CHECKING:
    from common.config.reference import OptionReference

NAMED = {
    **{
        key: f"--{key}"
        for key in ("run-id", "method", "task", "rounds", "seed", "catalogue", "resume", "start-from", "half-life")
    },
    "federation.min-clients": "--clients",
    "privacy.epsilon": "--epsilon",
    "privacy.delta": "--delta",
}
"""Key -> option of the training commands that sets it; `--set` sets the others."""


class KeyGroup(TyperGroup):
    """Group that reads other words than its commands as keys to list."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Return the command; `list` for a key."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["list", *args])


config = typer.Typer(
    cls=KeyGroup,
    invoke_without_command=True,
    add_completion=False,
    help="List and explain the options of runs.\n\n`fedloom config privacy` lists the options below a key."
    " `--set KEY=VALUE` of the training commands sets one.",
)

Keys = Annotated[
    list[str] | None,
    typer.Argument(autocompletion=list_keys, help="Keys of options or sections, such as privacy or tasks.rules."),
]


@config.callback()
def default(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--list", help="Show the options of all tasks and methods.")] = False,
    json: o.AsJson = False,
) -> None:
    """List all options, or run a command."""
    context.obj = json
    if context.invoked_subcommand is None:
        if not every:
            raise ConfigError("no option is named; name a key, such as privacy, or set --list")
        list_(context, json=json)


@config.command("list")
def list_(context: typer.Context, keys: Keys = None, json: o.AsJson = False) -> None:
    """List options: key, default, type, bounds and meaning."""
    from deploy.cli.output import print_object, say

    shown = _find(keys or ())
    if json or context.obj:
        print_object([_as_json(one) for one in shown])
        return
    for one in shown:
        say(f"{one.key} = {as_toml(one.default)}    ({_limits(one)})\n    {one.meaning}".rstrip())
        if one.of_methods:
            say(f"    Default of {defaults_of_methods(one)}.")


@config.command()
def explain(
    key: Annotated[str, typer.Argument(autocompletion=list_keys, metavar="KEY", help="Key of one option.")],
    json: o.AsJson = False,
) -> None:
    """Explain one option: type, default, bounds, meaning, and how to set it."""
    from deploy.cli.output import print_object, say

    [one, *others] = _find([key])
    if one.key != key:
        raise ConfigError(
            f"'{key}' is a section of {len(others) + 1} options; list them with fedloom config list {key}"
        )
    if json:
        print_object(_as_json(one))
        return
    say(f"{one.key}\n  {one.meaning}\n  type     {_limits(one)}\n  default  {as_toml(one.default)}")
    if one.of_methods:
        say(f"           {defaults_of_methods(one)}")
    say(f"  set by   {NAMED.get(one.key, f'--set {one.key}={as_toml(one.default)}')}")


@config.command()
def show(
    run: Annotated[str, typer.Argument(autocompletion=list_runs, metavar="RUN", help="Run, by name or folder.")],
    json: o.AsJson = False,
) -> None:
    """Show the options of a stored run, with the defaults that it changed."""
    from deploy.cli.output import print_object, say
    from deploy.federation.runs import find_run, stored_options

    stored = stored_options(find_run(run))
    references = {one.key: one for one in _find(())}
    if json:
        about = {key: _as_json(one) for key, one in references.items()}
        print_object([{"key": key, "value": value, **about.get(key, {})} for key, value in stored.items()])
        return
    names = [str(stored.get(key)) for key in ("method", "planner.inner")]
    for key, value in stored.items():
        default = references[key].default_of(names) if key in references and key != "run-id" else value
        say(f"{key} = {as_toml(value)}" + (f"    (default: {as_toml(default)})" if default != value else ""))


def _find(keys: Sequence[str]) -> "list[OptionReference]":
    """Return the options at or below the keys; all options without keys.

    Raises:
        ConfigError: There is no such key.
    """
    from common.config.reference import option_references
    from common.text import hint

    references = list(option_references())
    for key in keys:
        if not any(_is_below(one.key, key) for one in references):
            names = [one.key for one in references]
            longer = next((f"; did you mean '{name}'?" for name in names if name.endswith(f".{key}")), "")
            remedy = longer or hint(key, ["list", "explain", "show", *names])
            raise ConfigError(f"unknown option '{key}'{remedy or '; list all with fedloom config --list'}")
    return [one for one in references if not keys or any(_is_below(one.key, key) for key in keys)]


def _is_below(key: str, section: str) -> bool:
    return key == section or key.startswith(f"{section}.")


def _limits(one: "OptionReference") -> str:
    return ", ".join(filter(None, (one.type, one.bounds)))


def _as_json(one: "OptionReference") -> dict[str, object]:
    return {**asdict(one), "option": NAMED.get(one.key, "--set")}


def defaults_of_methods(one: "OptionReference") -> str:
    """Return the defaults of methods that have their own, such as `fedga: 1.0; fedrule, pfgnn: 0.01`."""
    values = dict.fromkeys(one.of_methods.values())
    names = {value: [name for name, other in one.of_methods.items() if other == value] for value in values}
    return "; ".join(f"{', '.join(names[value])}: {as_toml(value)}" for value in values)


def as_toml(value: object) -> str:
    """Return a value as a person types it behind `--set KEY=`."""
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
