"""Reference of all options: key, type, bounds, default and meaning, from the option classes."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.options import Options, Scalar, kebab
from common.tasks.registry import TASKS

CHOSEN = ("method_options", "planner_options", "task_options")
"""Fields that hold the options of the chosen method, planner and task."""

SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
"""Attribute of a field's constraint -> sign of the bound."""


@dataclass(frozen=True)
class OptionReference:
    """An option of a run.

    Args:
        key: Dotted key.
        default: Value if the option is not set.
        meaning: Documentation of the field; empty if its source is not installed.
        type: `true or false`, `integer`, `number`, `text`, or the allowed values.
        bounds: Limits of a number, such as `> 0, ≤ 1`; empty if there are none.
    """

    key: str
    default: Scalar
    meaning: str
    type: str = ""
    bounds: str = ""


def option_references() -> Iterator[OptionReference]:
    """Iterate over the options of runs, then of all methods, planners and tasks that can be imported."""
    yield from _options(RunConfig, "")
    for name in METHODS:
        yield from _of_entry(METHODS, name, "algorithm")
    for name in PLANNERS:
        yield from _of_entry(PLANNERS, name, "algorithm")
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
            field = kind.model_fields[name]
            yield OptionReference(key, value, _meaning(kind, name), _type(field, value), _bounds(field))


def _type(field: FieldInfo, default: Scalar) -> str:
    if get_origin(field.annotation) is Literal:
        return " or ".join(str(choice) for choice in get_args(field.annotation))
    names = {bool: "true or false", int: "integer", float: "number", str: "text"}
    return names.get(type(default), "text")


def _bounds(field: FieldInfo) -> str:
    limits = ((sign, getattr(one, name, None)) for one in field.metadata for name, sign in SIGNS.items())
    return ", ".join(f"{sign} {limit:g}" for sign, limit in limits if limit is not None)


def _meaning(kind: type[Any], name: str) -> str:
    """Return the text below a field, in the class that declares the field last."""
    texts = (field_texts(owner).get(name, "") for owner in kind.__mro__)
    return next((text for text in texts if text), "")


@cache
def field_texts(owner: type[Any]) -> dict[str, str]:
    """Return field -> the string that follows its declaration in the source of a class."""
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    body = next((node.body for node in _classes(file) if node.name == owner.__name__), []) if file else []
    texts = {}
    for declared, text in pairwise(body):
        match declared, text:
            case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(value=ast.Constant(value=str(meaning))):
                texts[field] = " ".join(meaning.split())
    return texts


@cache
def _classes(file: str) -> tuple[ast.ClassDef, ...]:
    """Return the classes of a module's file; none if it cannot be read."""
    try:
        tree = ast.parse(Path(file).read_text("utf-8"))
    except (OSError, ValueError, SyntaxError):
        return ()
    return tuple(node for node in tree.body if isinstance(node, ast.ClassDef))
