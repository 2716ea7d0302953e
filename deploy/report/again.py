"""The command that makes a run again."""

import json
import shlex
from typing import Any

from common.config import RunConfig, parse
from common.errors import ConfigError
from common.flat import flatten
from common.options import leaves
from deploy.report.history import History
from deploy.report.origin import Origin

DATA = "DATA"
"""Stands for data that were read: a run keeps no paths."""

_OPTIONS = ("method", "task", "rounds", "seed")
_NOT_SETTINGS = {*_OPTIONS, "run-id", "resume", "catalogue"}
_MADE = "demo"


def command(history: History) -> str:
    """`fedloom up` or `fedloom simulate` with all that differs from the defaults."""
    config, origin = history.config, _origin(history)
    words = ["fedloom", origin.command]
    for key in _OPTIONS:
        words += [f"--{key}", str(config[key])] if key in config else []
    words += [] if origin.data == _MADE else ["--data", origin.data or DATA]
    words += ["--clients", str(origin.clients)] if origin.clients else []
    noisy = config.get("privacy.unit") == "client" and "privacy.epsilon" in config
    words += ["--epsilon", f"{config['privacy.epsilon']:g}"] if noisy else []
    told = {**_defaults(config), **_own(origin)} | ({"privacy.epsilon": config["privacy.epsilon"]} if noisy else {})
    told |= {"privacy.unit": "client"} if noisy else {}
    for key, value in config.items():
        if key not in _NOT_SETTINGS and told.get(key) != value:
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def lacks(history: History) -> bool:
    """Whether the command has `DATA` to fill in."""
    return not _origin(history).data


def _origin(history: History) -> Origin:
    """As noted; without a note, as the configuration suggests."""
    if history.origin:
        return history.origin
    config = history.config
    data = _MADE if config.get("catalogue", _MADE) == _MADE else ""
    fewest = config.get("federation.min-clients", 0)
    if (fewest, config.get("federation.wait")) == (1, 1.0):
        return Origin("simulate", data, 0)
    return Origin("up", data, len(history.result.clients) if history.result else fewest)


def _own(origin: Origin) -> dict[str, Any]:
    """What the command sets by itself."""
    if origin.command == "simulate":
        return {"federation.min-clients": 1, "federation.wait": 1.0}
    return {"federation.min-clients": origin.clients}


def _defaults(config: dict[str, Any]) -> dict[str, Any]:
    """Of runs with that method, task, model and unit of privacy: which of them fit each other is checked."""
    chosen = ("model", "privacy.unit", f"algorithm.{config.get('method')}.inner")
    try:
        found = flatten(parse({key: config[key] for key in ("method", "task", *chosen) if key in config}))
    except ConfigError:
        return {}  # a run of another release: every setting is named
    unasked = dict(leaves(RunConfig().model_dump(by_alias=True), ""))
    return {**found, **{key: unasked[key] for key in chosen if key in unasked}}
