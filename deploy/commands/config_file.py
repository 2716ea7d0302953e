"""`--config FILE`: options of a run from a TOML file, such as runs/ID/config.toml."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from client.data.sources import is_demo
from common.config.parse import option_keys, parse
from common.config.retired import update_keys
from common.errors import ConfigError
from common.options import Scalar, leaves
from common.text import hint
from deploy.files import read_file
from deploy.report.launch_record import Origin, origin_of

OF_ONE_RUN = ("run-id", "resume")
"""Keys of a stored run that another run does not repeat."""

OF_SIMULATIONS = ("federation.min-clients", "federation.wait")
"""Keys that `fedloom simulate` sets itself; a federation of processes does not repeat them."""

SECTION = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?")
ASSIGNMENT = re.compile(r"\s*([^=#\[]+?)\s*=")


def read_config_file(path: Path) -> dict[str, Scalar]:
    """Return the options of a file by dotted key; sections and dotted keys may be mixed.

    Raises:
        ConfigError: The file cannot be read or is no TOML, or an option is unknown, removed or mistyped; names file and line.
    """
    try:
        text = read_file(path).decode("utf-8-sig")
        tree = tomllib.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"{path}: not a TOML file ({error}); write KEY = VALUE lines, as in runs/ID/config.toml"
        ) from None
    options = _update_keys(path, text, {key.replace("_", "-"): value for key, value in leaves(tree, "")})
    existing = option_keys()
    for key, value in options.items():
        if key not in existing:
            _refuse(path, text, key, f"unknown option '{key}'{hint(key, existing)}")
        if not isinstance(value, bool | int | float | str):
            _refuse(path, text, key, f"'{key}' has a value that is no option; write true, a number or a text")
    _check_values(path, text, options)
    origin = origin_of(path.parent) if "run-id" in options else None
    dropped = (*OF_ONE_RUN, *(OF_SIMULATIONS if origin and origin.command == "simulate" else ()))
    return {key: value for key, value in options.items() if key not in dropped}


def repeat_partition(path: Path | None, command: str, data: str, clients: int | None) -> tuple[str, int | None]:
    """Return data and clients of a run to repeat; what the command names is kept.

    Args:
        path: Configuration file; None if there is none.
        command: Name of the command.
        data: Data that the command names; `demo` if it names none.
        clients: Number of clients that the command sets; None if it sets none.

    Raises:
        ConfigError: The run was trained on own data, and the command names none.
    """
    origin = origin_of(path.parent) if path else None
    if not isinstance(origin, Origin) or path is None or data != "demo" or origin.command not in ("up", "simulate"):
        return data, clients
    if not is_demo(origin.data):
        run = path.resolve().parent.name
        raise ConfigError(f"run '{run}' was trained on own data, whose path is not stored; name them with --data")
    return origin.data, origin.clients if clients is None and origin.command == command else clients


def _update_keys(path: Path, text: str, options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    try:
        return update_keys(options)
    except ConfigError as error:
        named = re.split("[ =]", str(error), maxsplit=1)[0]
        _refuse(path, text, named, str(error))


def _check_values(path: Path, text: str, options: Mapping[str, Scalar]) -> None:
    """Raise ConfigError for a value out of range; contradicting options are found with the whole run."""
    try:
        parse(options)
    except ConfigError as error:
        wrong = next((key for key in options if f"'{key}': " in str(error)), "")
        if wrong:
            _refuse(path, text, wrong, str(error))


def _refuse(path: Path, text: str, key: str, fault: str) -> NoReturn:
    line = _find_line(text, key)
    raise ConfigError(f"{path}, line {line}: {fault}" if line else f"{path}: {fault}")


def _find_line(text: str, key: str) -> int:
    """Return the one-based line that sets a key; 0 if it is not found."""
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := SECTION.fullmatch(line):
            section = f"{match[1]}."
        elif match := ASSIGNMENT.match(line):
            name = re.sub(r"[\s\"']", "", section + match[1]).replace("_", "-")
            if key == name or key.startswith(f"{name}."):
                return number
    return 0
