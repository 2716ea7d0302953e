"""`fedloom completion`: scripts that complete commands, options, runs and keys in a shell."""

from enum import StrEnum
from typing import Annotated

import typer


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
