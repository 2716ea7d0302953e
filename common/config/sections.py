"""Options of the chosen task, method and planner, read from the sections `[tasks.<name>]` and `[algorithm.<name>]`."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field, create_model

from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.options import Options
from common.tasks.registry import TASKS


def task_options(sections: Any, task: str) -> Options:
    """Return the options of the task; sections of other tasks are validated and dropped.

    Raises:
        ValidationError: A section or an option is unknown or has a wrong value; located below the sections.
    """
    return _chosen(sections, task, lambda name: TASKS[name].options if name in TASKS else None)


def method_options(sections: Any, method: str) -> Options:
    """Return the options of the method that trains: `method`, or the inner method of a planner.

    Raises:
        ValidationError: As `task_options`.
    """
    options = planner_options(sections, method)
    return _chosen(sections, getattr(options, "inner", method), _method_class)


def planner_options(sections: Any, method: str) -> Options | None:
    """Return the options of the planner named `method`; None if that is no planner.

    Raises:
        ValidationError: As `task_options`.
    """
    return _chosen(sections, method, _method_class) if method in PLANNERS else None


def ignored_sections(sections: Any, method: str) -> list[str]:
    """Return the sections `[algorithm.<name>]` that are set but belong to neither the method nor its inner method."""
    if not isinstance(sections, Mapping) or method not in {*METHODS, *PLANNERS}:
        return []
    inner = getattr(planner_options(sections, method), "inner", method)
    return sorted(set(sections) - {method, inner})


def _method_class(name: str) -> type[Options] | None:
    if name in PLANNERS:
        return PLANNERS[name].options
    return METHODS[name].options if name in METHODS else None


def _chosen(sections: Any, name: str, class_of: Callable[[str], type[Options] | None]) -> Options:
    """Validate every known section under its class and return the one of that name, with defaults where it is absent."""
    if not isinstance(sections, Mapping):
        sections = {}
    classes = {key: known for key in dict.fromkeys([name, *sections]) if (known := class_of(key))}
    fields: dict[str, Any] = {key: (known, Field(default_factory=known)) for key, known in classes.items()}
    options: Options = getattr(create_model("Sections", __base__=Options, **fields).model_validate(sections), name)
    return options
