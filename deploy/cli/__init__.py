"""The `fedloom` command."""

import sys
from collections.abc import Callable

import typer
from rich.markup import escape

from common.errors import ConfigError, FedloomError
from deploy.cli import options
from deploy.commands import budget, data, export, forecast, join, recommend, simulate, up

app = typer.Typer(
    help="Federated learning for private graphs and time series, on Flower.",
    epilog="Start with `fedloom up`: a whole federation on this machine. See README.md for separate machines and Docker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
COMMANDS: tuple[Callable[..., None], ...] = (
    up.up,
    simulate.simulate,
    up.serve,
    join.join,
    up.submit,
    recommend.recommend,
    forecast.forecast,
    forecast.properties,
    recommend.report,
    export.export,
    budget.budget,
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(join.keys, name="keys")
app.add_typer(data.data, name="data")


def main() -> None:
    """Run the command; errors that are ours are told in one line, with exit status 2 for wrong use and 1 otherwise."""
    try:
        app()
    except FedloomError as error:
        options.console.print(f"[bold red]fedloom:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except OSError as error:  # a folder that may not be written, a full disk
        told = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        options.console.print(f"[bold red]fedloom:[/] {escape(told)}", highlight=False, soft_wrap=True)
        sys.exit(1)
