"""Typer application whose commands are imported when they run or show their own help."""

import re
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from click import Command, Context
from typer.core import TyperCommand, TyperGroup

from deploy.cli.commands import COMMANDS, CommandRef
from deploy.tasks.registry import task_commands


class LazyGroup(TyperGroup):
    """Group of commands that are imported on first use; before, it has their names and summaries only."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.refs = {ref.name: ref for ref in COMMANDS}
        for ref in task_commands():
            self.refs.setdefault(ref.name, ref)  # a task cannot replace a command
        self.commands = {ref.name: TyperCommand(ref.name, help=ref.summary) for ref in self.refs.values()}

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Return the command to run, imported; an unknown name is answered with the nearest ones."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(self.refs[name]) if name in self.refs else command, rest


def load(ref: CommandRef) -> Command:
    """Import a command."""
    module, _, attribute = ref.target.partition(":")
    target = getattr(import_module(module), attribute)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False)
        target.command(ref.name)(function)
    command = typer.main.get_command(target)
    command.name = ref.name
    for one in (command, *getattr(command, "commands", {}).values()):
        one.help = re.sub(r"(?<!\n)\n(?!\n)", " ", one.help or "")  # Rich would keep the line breaks of the source
    return command


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedloom {version('fedloom')}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    help="Federated learning for private graphs and time series, on Flower.",
    epilog="Start with `fedloom up`: a whole federation on this machine. See README.md for separate machines and Docker.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    suggest_commands=False,  # Click suggests them itself
)


@app.callback()
def fedloom(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Federated learning for private graphs and time series, on Flower."""
