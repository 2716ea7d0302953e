"""`fedloom config`: the options of runs."""

from dataclasses import asdict
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o


def config(
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="Show the options at or below these keys, such as privacy or tasks.rules."),
    ] = None,
    every: Annotated[bool, typer.Option("--list", help="Show the options of all tasks and methods.")] = False,
    json: o.AsJson = False,
) -> None:
    """List the options of runs.

    Shows key, default and meaning of each option. `--set KEY=VALUE` of the training commands sets one.
    """
    from common.config.reference import option_references
    from common.options import hint
    from deploy.cli.output import print_object, say

    if not keys and not every:
        raise ConfigError("no option is named; name a key, such as privacy, or set --list")
    references = list(option_references())
    for key in keys or []:
        if not any(_is_below(one.key, key) for one in references):
            names = [one.key for one in references]
            longer = next((f"; did you mean '{name}'?" for name in names if name.endswith(f".{key}")), "")
            remedy = longer or hint(key, names) or "; list all with fedloom config --list"
            raise ConfigError(f"unknown option '{key}'{remedy}")
    shown = [one for one in references if every or any(_is_below(one.key, key) for key in keys or [])]
    if json:
        print_object([asdict(one) for one in shown])
        return
    for one in shown:
        say(f"{one.key} = {_as_toml(one.default)}\n    {one.meaning}".rstrip())


def _is_below(key: str, section: str) -> bool:
    return key == section or key.startswith(f"{section}.")


def _as_toml(value: object) -> str:
    """Return a value as a person types it behind `--set KEY=`."""
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
