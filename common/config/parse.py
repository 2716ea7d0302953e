"""Configurations as dotted keys and scalars: parser, `--set KEY=VALUE`, the inverse, training alone."""

import json
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from common.config.keys import assign_shared, current_key, respell, update_keys
from common.config.reference import option_references
from common.config.run import RunConfig
from common.errors import ConfigError, WireError
from common.methods.base import LocalTraining
from common.methods.registry import ALONE
from common.options import Scalar, kebab, leaves
from common.tasks.registry import TASKS
from common.text import hint

SECTIONS = {"algorithm": "method", "tasks": "task"}
"""Sections of options for each name, and the key that chooses the name."""


def parse(flat: Mapping[str, Scalar]) -> RunConfig:
    """Parse dotted keys such as `algorithm.fedrule.lam`.

    Raises:
        ConfigError: A key is unknown, removed or without effect, or a value is invalid.
    """
    tree: dict[str, Any] = {}
    placed, faults = assign_shared(respell(update_keys(flat), note=True))
    for key, value in placed.items():
        *parents, leaf = key.split(".")
        node = tree
        for k, parent in enumerate(parents):
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                section = ".".join(parents[: k + 1])
                raise ConfigError(f"option '{section}' is set both to a value and as a section; remove one of them")
        node[leaf] = value
    for section, key in SECTIONS.items():
        if not isinstance(tree.get(section, {}), dict):
            raise ConfigError(f"option '{section}' is a section; set {key}={tree[section]}, or {section}.NAME.OPTION")
    try:
        config = RunConfig.model_validate(tree)
    except ValidationError as error:
        faults += [_explain(e["loc"], e["type"], e["msg"], e.get("input")) for e in error.errors()]
        raise ConfigError("; ".join(dict.fromkeys(faults))) from None
    if faults:
        raise ConfigError("; ".join(faults))
    ignored = {*tree.get("algorithm", {})} - {config.method, config.method_options.name, config.first}
    if ignored:
        other = min(ignored)
        raise ConfigError(
            f"option algorithm.{other}.* has no effect with method {config.method}; remove it or set method={other}"
        )
    return config


def option_keys() -> tuple[str, ...]:
    """Return all option keys, with the sections of all installed tasks and methods."""
    return tuple(option.key for option in option_references())


def _explain(loc: tuple[int | str, ...], kind: str, message: str, value: object) -> str:
    path = current_key(".".join(str(part) for part in loc))
    if kind == "extra_forbidden":
        existing = dict.fromkeys(".".join(key.split(".")[: len(loc)]) for key in option_keys())
        return f"unknown option '{path}'{hint(path, existing, cutoff=0.5)}"
    message = message.removeprefix("Value error, ")
    if path in ("method", "task"):
        return message
    return f"'{path}': {message} (got {value!r})" if path and not isinstance(value, (dict, BaseModel)) else message


def read_overrides(assignments: list[str]) -> dict[str, Scalar]:
    """Return the keys and values of `key=value` assignments; a value that is not TOML stays text.

    Raises:
        ConfigError: An assignment has no `=` or no key, or an option was removed.
    """
    pairs: dict[str, Scalar] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                f"--set {assignment} is not an assignment; write key=value, for example algorithm.fedrule.lam=1.0"
            )
        try:
            value = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            value = text
        pairs[key.strip()] = value
    return update_keys(pairs)


def flatten(config: RunConfig) -> dict[str, Scalar]:
    """Return the configuration as dotted keys, with the sections of the chosen task, method and planner."""
    return respell(_wire_options(config))


def _wire_options(config: RunConfig) -> dict[str, Scalar]:
    """Return the options by the keys of messages, in which each method has all its options."""
    of_names = {"method_options", "planner_options", "first_options", "task_options"}
    tree = config.model_dump(by_alias=True, exclude=of_names)
    methods = [options for options in (config.method_options, config.planner_options) if options]
    tree["algorithm"] = {options.name: options.model_dump(by_alias=True) for options in methods}
    if first := config.first_options:  # without the options of training
        tree["algorithm"][first.name] = first.model_dump(by_alias=True, exclude={*LocalTraining.model_fields})
    tree["tasks"] = {config.task: config.task_options.model_dump(by_alias=True)}
    return dict(leaves(tree, ""))


def to_json(config: RunConfig) -> str:
    """Return the configuration as JSON for clients, by the keys that all releases read."""
    return json.dumps(_wire_options(config), sort_keys=True)


@lru_cache(maxsize=4)
def read_names(text: str) -> tuple[str, str, str, str]:
    """Return the names of task, method, training method and method `first` in the text of `to_json`.

    The function imports no task and no method.

    Raises:
        WireError: The text is not a configuration.
    """
    try:
        flat = json.loads(text)
        method = str(flat["method"])
        inner = flat.get("planner.inner", flat.get(f"algorithm.{method}.inner", method))
        return str(flat["task"]), method, str(inner), str(flat.get("first", ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise WireError("the run's configuration cannot be decoded") from None


def from_json(text: str) -> RunConfig:
    """Parse the text of `to_json`, by its own keys or those of `flatten`."""
    return parse(respell(json.loads(text)))


def is_comparable(config: RunConfig) -> bool:
    """Return True if a run can be compared with each client alone: no noise, units, another method."""
    is_alone = config.method_options.name == ALONE
    return config.privacy.unit == "none" and not is_alone and TASKS[config.task].comparison is not None


def configure_alone(config: RunConfig, rounds: int) -> RunConfig:
    """Return the configuration of the same training without a federation: no noise, no sums of others.

    A closed form stays one, and is solved by own sums.

    Raises:
        ConfigError: The method of clients alone does not support the task's options.
    """
    is_closed = config.capabilities.closed_form
    others = ("planner.", "federation.", *(() if is_closed else ("algorithm.",)))  # the section `training` stays
    flat = {key: value for key, value in flatten(config).items() if not key.startswith(others)}
    flat |= {} if is_closed else {"method": ALONE}
    flat |= {f"algorithm.{config.method_options.name}.min-count": 0} if config.capabilities.min_count else {}
    flat |= {"rounds": rounds, "evaluate-every": rounds, "run-id": "alone", "resume": False}
    flat |= {"first": "", "start-from": "", "half-life": 0.0}
    flat |= {"privacy.trust": "auto"} if config.privacy.resolved_trust == "helpers" else {}
    flat |= {f"tasks.{config.task}.{kebab(name)}": value for name, value in config.task_options.alone.items()}
    return parse(flat)


def reason_for_replies(config: RunConfig) -> str:
    """Return why a run needs a reply of each client of a hub; empty if hubs may add them up."""
    federation, task = config.federation, config.task_options
    if federation.answer != "sums":
        return f"federation.answer is {federation.answer}"
    if config.robust != "none":
        return f"federation.robust={federation.robust} compares single updates"
    if not config.capabilities.sum_only:
        return f"{config.method} uses single updates"
    return "updates name the rows that they change" if task.named_rows or task.gathers_rows else ""
