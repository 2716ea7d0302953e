"""Sections `[tasks.<name>]` and `[algorithm.<name>]` of a raw configuration, and its validation split."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field, ValidationError, create_model

from common.methods.planners import PLANNERS, PlannerOptions
from common.methods.registry import METHODS
from common.options import Options
from common.tasks.registry import FIRST_TASK, TASKS


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


def add_validation_share(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a raw configuration with a validation split if the run needs one and none is set."""
    task, tasks = tree.get("task", FIRST_TASK), tree.get("tasks", {})
    section = tasks.get(task, {}) if isinstance(tasks, Mapping) else None
    if not isinstance(section, Mapping) or {"validation-share", "validation_share"} & section.keys():
        return tree
    if task not in TASKS or not (_needs_rewards(tree) or _stops_early(tree)):
        return tree
    return {**tree, "tasks": {**tasks, task: {**section, "validation-share": TASKS[task].planner_validation_share}}}


def limit_rounds(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a raw configuration that ends with the last sum if its method solves a closed form."""
    method, task = tree.get("method", ""), tree.get("task", FIRST_TASK)
    if method not in METHODS or task not in TASKS or not METHODS[method].options().capabilities().closed_form:
        return tree
    form, options = TASKS[task].closed_form, read_method_options(tree.get("algorithm", {}), method)
    sums = form.sums - bool(getattr(options, "strength", 0)) if form else 1
    return {**tree, "rounds": sums, "evaluate-every": sums}


def check_validation_share(planner: PlannerOptions | None, stop: int, task: str, share: float) -> None:
    """Check that a run has a validation split if its planner learns from rewards or it may stop early.

    Raises:
        ValueError: The share is 0.
    """
    remedy = f"set tasks.{task}.validation-share above 0"
    if not share and planner and planner.by_rewards:
        raise ValueError(f"{planner.name} needs rewards, which the test split must not provide; {remedy}")
    if not share and stop:
        raise ValueError(f"federation.stop={stop} needs metrics, which the test split must not provide; {remedy}")


def _stops_early(tree: Mapping[str, Any]) -> bool:
    federation = tree.get("federation")
    stop = federation.get("stop", 0) if isinstance(federation, Mapping) else getattr(federation, "stop", 0)
    return bool(stop)


def _needs_rewards(tree: Mapping[str, Any]) -> bool:
    try:
        planner = read_planner_options(tree.get("algorithm", {}), tree.get("method", ""))
    except ValidationError:  # reported when the section itself is validated
        return False
    return isinstance(planner, PlannerOptions) and planner.by_rewards
