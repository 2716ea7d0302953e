"""Readers of the sections `[tasks.<name>]` and `[algorithm.<name>]`; they return the chosen options."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field, create_model

from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.options import Options
from common.tasks.registry import TASKS


def read_task_options(sections: Any, task: str) -> Options:
    """Return the options of the task; sections of other tasks are validated and dropped.

    Raises:
        ValidationError: A section or an option is unknown, or a value is invalid.
    """
    return _read_chosen(sections, task, lambda name: TASKS[name].options if name in TASKS else None)


def read_method_options(sections: Any, method: str) -> Options:
    """Return the options of the training method; for a planner, of its inner method.

    Raises:
        ValidationError: As in `read_task_options`.
    """
    options = read_planner_options(sections, method)
    return _read_chosen(sections, getattr(options, "inner", method), _method_class)


def read_planner_options(sections: Any, method: str) -> Options | None:
    """Return the options of the planner named `method`; None if it is a training method.

    Raises:
        ValidationError: As in `read_task_options`.
    """
    return _read_chosen(sections, method, _method_class) if method in PLANNERS else None


def find_ignored_sections(sections: Any, method: str) -> list[str]:
    """Return the names of set sections `[algorithm.<name>]` that the method does not use."""
    if not isinstance(sections, Mapping) or method not in {*METHODS, *PLANNERS}:
        return []
    inner = getattr(read_planner_options(sections, method), "inner", method)
    return sorted(set(sections) - {method, inner})


def _method_class(name: str) -> type[Options] | None:
    if name in PLANNERS:
        return PLANNERS[name].options
    return METHODS[name].options if name in METHODS else None


def _read_chosen(sections: Any, name: str, class_of: Callable[[str], type[Options] | None]) -> Options:
    """Validate every section that has a class; return the section `name`, or its defaults if absent."""
    if not isinstance(sections, Mapping):
        sections = {}
    classes = {key: kind for key in dict.fromkeys([name, *sections]) if (kind := class_of(key))}
    fields: dict[str, Any] = {key: (kind, Field(default_factory=kind)) for key, kind in classes.items()}
    options: Options = getattr(create_model("Sections", __base__=Options, **fields).model_validate(sections), name)
    return options
