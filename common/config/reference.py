"""Reference of all options: key, type, bounds, default and meaning, from the option classes."""

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from common.config.keys import PLANNER, TRAINING, current_key
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.base import LocalTraining
from common.methods.planners import PLANNERS, PlannerOptions
from common.methods.registry import METHODS
from common.options import Options, Scalar, kebab
from common.tasks.registry import TASKS

CHOSEN = ("method_options", "planner_options", "first_options", "task_options")
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
        of_methods: Method or planner -> its own default, in the sections that they share.
    """

    key: str
    default: Scalar
    meaning: str
    type: str = ""
    bounds: str = ""
    of_methods: Mapping[str, Scalar] = field(default_factory=dict)

    def default_of(self, names: Collection[str]) -> Scalar:
        """Return the default in a run of these methods and planners."""
        return next((value for name, value in self.of_methods.items() if name in names), self.default)


def option_references() -> Iterator[OptionReference]:
    """Iterate over the options of runs, then of all methods, planners and tasks that can be imported."""
    methods, planners = dict(_installed(METHODS)), dict(_installed(PLANNERS))
    yield from _options(RunConfig, "")
    yield from _shared(LocalTraining, TRAINING, methods)
    yield from _shared(PlannerOptions, PLANNER, planners)
    for name, options in {**methods, **planners}.items():
        yield from (one for one in _options(options, f"algorithm.{name}.") if current_key(one.key) == one.key)
    for name, options in _installed(TASKS):
        yield from _options(options, f"tasks.{name}.")


def _installed(registry: Any) -> Iterator[tuple[str, type[Options]]]:
    for name in registry:
        with suppress(ConfigError):  # `fedloom tasks` and `fedloom methods` show the error
            yield name, registry[name].options


def _shared(kind: type[Options], section: str, owners: Mapping[str, type[Options]]) -> Iterator[OptionReference]:
    defaults = {name: options() for name, options in owners.items()}
    for one, field_name in zip(_options(kind, f"{section}."), kind.model_fields, strict=True):
        values = {name: getattr(options, field_name) for name, options in defaults.items()}
        yield replace(one, of_methods={name: value for name, value in values.items() if value != one.default})


def _options(kind: type[Options], prefix: str) -> Iterator[OptionReference]:
    defaults = kind()
    for name in kind.model_fields:
        if name in CHOSEN:
            continue
        value, key = getattr(defaults, name), f"{prefix}{kebab(name)}"
        if isinstance(value, Options):
            yield from _options(type(value), f"{key}.")
        else:
            info = kind.model_fields[name]
            yield OptionReference(key, value, _meaning(kind, name), _type(info, value), _bounds(info))


def _type(info: FieldInfo, default: Scalar) -> str:
    if get_origin(info.annotation) is Literal:
        return " or ".join(str(choice) for choice in get_args(info.annotation))
    names = {bool: "true or false", int: "integer", float: "number", str: "text"}
    return names.get(type(default), "text")


def _bounds(info: FieldInfo) -> str:
    limits = ((sign, getattr(one, name, None)) for one in info.metadata for name, sign in SIGNS.items())
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
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                texts[name] = " ".join(meaning.split())
    return texts


@cache
def _classes(file: str) -> tuple[ast.ClassDef, ...]:
    """Return the classes of a module's file; none if it cannot be read."""
    try:
        tree = ast.parse(Path(file).read_text("utf-8"))
    except (OSError, ValueError, SyntaxError):
        return ()
    return tuple(node for node in tree.body if isinstance(node, ast.ClassDef))
