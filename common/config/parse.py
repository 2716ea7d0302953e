"""Parser of configurations in dotted keys; errors name the key and the closest valid key."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from common.config.retired import update_keys
from common.config.run import RunConfig
from common.config.sections import find_ignored_sections
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.options import Scalar, leaves
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
    for key, value in update_keys(flat).items():
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
        reasons = (_explain(e["loc"], e["type"], e["msg"], e.get("input")) for e in error.errors())
        raise ConfigError("; ".join(dict.fromkeys(reasons))) from None
    for other in find_ignored_sections(tree.get("algorithm"), config.method):
        raise ConfigError(
            f"option algorithm.{other}.* has no effect with method {config.method}; remove it or set method={other}"
        )
    return config


def option_keys() -> tuple[str, ...]:
    """Return all option keys, with the sections of all installed tasks and methods."""
    config = RunConfig()
    tree = config.model_dump(by_alias=True, exclude={"method_options", "planner_options", "task_options"})
    methods = {name: METHODS[name].options for name in METHODS} | {n: spec.options for n, spec in PLANNERS.items()}
    tree["algorithm"] = {name: kind().model_dump(by_alias=True) for name, kind in methods.items()}
    tree["tasks"] = {name: TASKS[name].options().model_dump(by_alias=True) for name in TASKS}
    return tuple(key for key, _ in leaves(tree, ""))


def _list_prefixes(depth: int) -> list[str]:
    """Return the option keys cut to at most `depth` parts, each once."""
    return list(dict.fromkeys(".".join(key.split(".")[:depth]) for key in option_keys()))


def _explain(place: tuple[int | str, ...], kind: str, message: str, value: object) -> str:
    path = ".".join(str(part) for part in place)
    if kind == "extra_forbidden":
        return f"unknown option '{path}'{hint(path, _list_prefixes(len(place)), cutoff=0.5)}"
    message = message.removeprefix("Value error, ")
    if path in ("method", "task"):
        return message
    return f"'{path}': {message} (got {value!r})" if path and not isinstance(value, (dict, BaseModel)) else message
