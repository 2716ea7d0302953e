"""Typer application that imports a command when it runs or shows its own help; `fedloom completion`."""

import re
from collections.abc import Callable
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Annotated, Any

import click
import typer
from click import Command, Context
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from common.files import expand_home
from common.registry import load_attribute
from deploy.cli.commands import COMMANDS, CommandRef
from deploy.tasks.registry import DEPLOY_TASKS

WHAT, DATA, PRIVACY, WHERE, OUTPUT = PANELS = ("What", "Data", "Privacy", "Where", "Output")

OPTIONS = {
    DATA: "--data --column --decimal --dates --test --catalogue --shard",
    PRIVACY: "--epsilon --delta --policy --ledgers --raise-to",
    WHERE: "--server --ca --key --patience --insecure --name --state-dir --state --clients --together --host --home"
    " --port --control-port --control --nodes --work",
    OUTPUT: "--run-id --out --json --top --help",
}
"""Heading -> its options; others are of WHAT, unless an option names its own `rich_help_panel`."""


def find_panel(option: str) -> str:
    """Return the heading of an option."""
    return next((panel for panel, names in OPTIONS.items() if option in names.split()), WHAT)


MIN_GROUPED = 6
"""Number of options from which a command's help groups them."""


class LazyGroup(TyperGroup):
    """Group of commands that are imported on first use; before, it has their names and summaries only."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.refs = {ref.name: ref for ref in COMMANDS}
        for ref in (ref for task in DEPLOY_TASKS.usable() for ref in task.commands):
            self.refs.setdefault(ref.name, ref)  # a task cannot replace a command
        self.commands = {
            ref.name: TyperCommand(ref.name, help=_as_typed(ref.summary), rich_help_panel=ref.panel)
            for ref in self.refs.values()
        }

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Return the imported command, a sweep for several seeds; an unknown name is answered."""
        name, command, rest = super().resolve_command(ctx, args)
        if name == "simulate" and re.search(r"--seed[= ]\d+,", " ".join(rest)):
            name = "sweep"
        return name, load(self.refs[name]) if name in self.refs else command, rest


def load(ref: CommandRef) -> Command:
    """Import a command."""
    target = load_attribute(ref.target)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False)
        target.command(ref.name)(function)
    command = typer.main.get_command(target)
    command.name = ref.name
    for one in (command, *getattr(command, "commands", {}).values()):
        _format_help(one)
        one.params += [_anywhere(_hush, "--quiet", "-q"), _anywhere(_talk, "--verbose", "-v")]
        for parameter in one.params:
            if isinstance(parameter.type, click.Path):
                parameter.type = HomePath()
    return command


def _anywhere(callback: Callable[[bool], None], *names: str) -> TyperOption:
    """Return an option of the program, for use after the name of a command too."""
    return TyperOption(
        param_decls=list(names),
        is_flag=True,
        hidden=True,
        expose_value=False,
        callback=lambda context, option, wanted: callback(wanted),
    )


class HomePath(click.Path):
    """Path in which a leading `~` is the home folder, found when the command runs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context | None) -> Path:
        """Return the path.

        Raises:
            ConfigError: The user has no home folder.
        """
        return expand_home(Path(value))


def _format_help(command: Command) -> None:
    """Join the lines of paragraphs, show brackets as typed, and group the options if there are several."""
    command.help = _as_typed(re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or ""))
    for parameter in command.params:
        if isinstance(parameter, TyperOption | TyperArgument):
            parameter.help = _as_typed(parameter.help or "")
    options = [parameter for parameter in command.params if isinstance(parameter, TyperOption)]
    if len(options) >= MIN_GROUPED:
        for option in options:
            option.rich_help_panel = option.rich_help_panel or find_panel(option.opts[0])
        order = {panel: number for number, panel in enumerate(PANELS)}
        command.params.sort(key=lambda one: order.get(getattr(one, "rich_help_panel", None) or "", -1))
        help_option = command.get_help_option(Context(command))
        setattr(help_option, "rich_help_panel", find_panel("--help"))  # noqa: B010 - Typer's attribute, unknown to Click


def _as_typed(text: str) -> str:
    """Escape the markup of Rich, so that `[sumo]` is shown."""
    if "[" not in text:
        return text
    from rich.markup import escape

    return escape(text)


def _print_version(wanted: bool) -> None:
    if wanted:
        versions = (f"{name} {version(name)}" for name in ("flwr", "torch"))
        typer.echo(f"fedloom {version('fedloom')} ({', '.join(versions)}, python {python_version()})")
        raise typer.Exit


def _hush(wanted: bool) -> None:
    """Print no notes and no progress on stderr."""
    if wanted:
        from deploy.cli.output import console

        console.quiet = True


def _talk(wanted: bool) -> None:
    """Print what this process logs on stderr, from INFO on."""
    if wanted:
        import logging

        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s: %(message)s")


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
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", callback=_hush, help="Print errors and stdout alone.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", callback=_talk, help="Print what libraries log too.")
    ] = False,
) -> None:
    """Federated learning for private graphs and time series, on Flower."""


class Shell(StrEnum):
    """Shells with a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(help="Shell that reads the script.")]
) -> None:
    """Print the completion script of a shell.

    In bash: source <(fedloom completion bash). Put the line into ~/.bashrc to keep it. The script completes commands, options,
    names of runs and the keys of --set.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # Typer registers every shell of the list
    typer.echo(kind(context.find_root().command, {}, "fedloom", "_FEDLOOM_COMPLETE").source())
