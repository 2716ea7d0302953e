"""Reference of all options: key, default and meaning, from the option classes."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.options import Options, Scalar, kebab
from common.tasks.registry import TASKS

CHOSEN = ("method_options", "planner_options", "task_options")
"""Fields that hold the options of the chosen method, planner and task."""


@dataclass(frozen=True)
class OptionReference:
    """An option of a run.

    Args:
        key: Dotted key.
        default: Value if the option is not set.
        meaning: Documentation of the field; empty if its source is not installed.
    """

    key: str
    default: Scalar
    meaning: str


def option_references() -> Iterator[OptionReference]:
    """Iterate over the options of runs, then of all methods, planners and tasks that can be imported."""
    yield from _options(RunConfig, "")
    for name in METHODS:
        yield from _of_entry(METHODS, name, "algorithm")
    for name, planner in PLANNERS.items():
        yield from _options(planner.options, f"algorithm.{name}.")
    for name in TASKS:
        yield from _of_entry(TASKS, name, "tasks")


def _of_entry(registry: Any, name: str, section: str) -> Iterator[OptionReference]:
    try:
        options = registry[name].options
    except ConfigError:
        return  # `fedloom tasks` and `fedloom methods` show the error
    yield from _options(options, f"{section}.{name}.")


def _options(kind: type[Options], prefix: str) -> Iterator[OptionReference]:
    defaults = kind()
    for name in kind.model_fields:
        if name in CHOSEN:
            continue
        value, key = getattr(defaults, name), f"{prefix}{kebab(name)}"
        if isinstance(value, Options):
            yield from _options(type(value), f"{key}.")
        else:
            yield OptionReference(key, value, _meaning(kind, name))


def _meaning(kind: type[Any], name: str) -> str:
    """Return the text below a field, in the class that declares the field last."""
    texts = (_field_texts(owner).get(name, "") for owner in kind.__mro__)
    return next((text for text in texts if text), "")


@cache
def _field_texts(owner: type[Any]) -> dict[str, str]:
    """Return field -> the string that follows its declaration in the source of a class."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    except (OSError, TypeError):
        return {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    texts = {}
    for declared, text in pairwise(statements):
        match declared, text:
            case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(value=ast.Constant(value=str(meaning))):
                texts[field] = " ".join(meaning.split())
    return texts
