"""Command that reproduces a run."""

import json
import shlex
from typing import Any

from common.config.flatten import flatten
from common.config.parse import parse
from common.config.retired import is_ignored
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from deploy.report.launch_record import Origin
from deploy.report.run import RunRecord

DATA, CATALOGUE = "DATA", "CATALOGUE"
"""Placeholders for data or a vocabulary that were read: a run stores no paths."""

_BLANKS = {
    DATA: "DATA by the path of your data, and add --test, --catalogue or --policy if they were used",
    CATALOGUE: "CATALOGUE by the vocabulary file",
}

_OPTIONS = ("method", "task", "rounds", "seed")
_NOT_SETTINGS = {*_OPTIONS, "run-id", "resume", "catalogue", "federation.stop"}
_MADE = "demo"


def command(history: RunRecord) -> str:
    """Return a command that is equivalent to the original one.

    It sets everything that differs from the defaults.
    """
    config, origin = history.config, _origin(history)
    words = ["fedloom", origin.command]
    for key in _OPTIONS:
        words += [f"--{key}", str(config[key])] if key in config else []
    words += _source(history, origin)
    words += ["--clients", str(origin.clients)] if origin.clients else []
    noisy = config.get("privacy.unit") == "client" and "privacy.epsilon" in config
    words += ["--epsilon", f"{config['privacy.epsilon']:g}"] if noisy else []
    words += _patience(config, origin)
    implied = {**_defaults(config), **_command_settings(origin)}
    implied |= {"privacy.unit": "client", "privacy.epsilon": config["privacy.epsilon"]} if noisy else {}
    for key, value in config.items():
        if key not in _NOT_SETTINGS and implied.get(key) != value and not is_ignored(key, value):
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _patience(config: dict[str, Any], origin: Origin) -> list[str]:
    """Return early stopping where it differs from the command's default; `fedloom up` has one of its own."""
    stop = config.get("federation.stop", 0)
    own = origin.command == "up" and config.get("privacy.unit", "none") == "none" and config.get("rounds") != 1
    return ["--patience", str(stop)] if stop or (own and config.get("method") not in PLANNERS) else []


def lacks(history: RunRecord) -> str:
    """Return the placeholders to replace in the command; empty if there are none."""
    source = _source(history, _origin(history))
    return _BLANKS[source[1]] if source and source[1] in _BLANKS else ""


def _source(history: RunRecord, origin: Origin) -> list[str]:
    """Return the option of the data or, for data of joining clients, of the vocabulary."""
    if origin.command in ("serve", "submit"):
        return [] if _has_demo_vocabulary(history) else ["--catalogue", CATALOGUE]
    return [] if origin.data == _MADE else ["--data", origin.data or DATA]


def _has_demo_vocabulary(history: RunRecord) -> bool:
    return bool(history.config.get("catalogue", _MADE) == _MADE)


def _origin(history: RunRecord) -> Origin:
    """Return the stored origin; without it, the likely one by the configuration."""
    if history.origin:
        return history.origin
    config = history.config
    data = _MADE if _has_demo_vocabulary(history) else ""
    fewest = config.get("federation.min-clients", 0)
    if (fewest, config.get("federation.wait")) == (1, 1.0):
        return Origin("simulate", data, 0)
    return Origin("up", data, len(history.result.clients) if history.result else fewest)


def _command_settings(origin: Origin) -> dict[str, Any]:
    """Return the settings that the command sets by itself."""
    if origin.command == "simulate":
        return {"federation.min-clients": 1, "federation.wait": 1.0}
    return {"federation.min-clients": origin.clients}


def _defaults(config: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of runs with that method, task, model and privacy unit."""
    chosen = ("model", "privacy.unit", "federation.stop", f"algorithm.{config.get('method')}.inner")
    try:
        defaults = flatten(parse({key: config[key] for key in ("method", "task", *chosen) if key in config}))
    except ConfigError:
        return {}  # a run of another release: every setting is named
    planner = PLANNERS.get(str(config.get("method")))
    inner = {chosen[-1]: planner.options().inner} if planner else {}
    return {**defaults, "model": RunConfig().model, "privacy.unit": RunConfig().privacy.unit, **inner}
