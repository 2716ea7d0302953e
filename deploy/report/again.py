"""The command that makes a run again."""

import json
import shlex
from typing import Any

from common.config import parse
from common.errors import ConfigError
from common.flat import flatten
from deploy.report.history import History

_OPTIONS = ("method", "task", "rounds", "seed")
_NOT_SETTINGS = {"run-id", "resume"}


def command(history: History) -> str:
    """`fedloom up` with all that differs from the defaults; `--data` where it was given is the reader's to add."""
    words = ["fedloom", "up"]
    for key in _OPTIONS:
        if key in history.config:
            words += [f"--{key}", str(history.config[key])]
    if history.result:
        words += ["--clients", str(len(history.result.clients))]
    defaults = _defaults(history.config)
    for key, value in history.config.items():
        if key not in {*_OPTIONS, *_NOT_SETTINGS} and defaults.get(key) != value:
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _defaults(config: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict(flatten(parse({key: config[key] for key in ("method", "task") if key in config})))
    except ConfigError:
        return {}  # a run of another release: every setting is named
