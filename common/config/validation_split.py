"""Validation split of planners that learn from rewards (algorithms.md §4.8)."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from common.config import sections
from common.methods.planners import PlannerOptions
from common.tasks.registry import FIRST_TASK, TASKS


def add_validation_share(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a raw configuration with a validation split if its planner needs one and none is set."""
    task, tasks = tree.get("task", FIRST_TASK), tree.get("tasks", {})
    section = tasks.get(task, {}) if isinstance(tasks, Mapping) else None
    if not isinstance(section, Mapping) or {"validation-share", "validation_share"} & section.keys():
        return tree
    if task not in TASKS or not _needs_rewards(tree):
        return tree
    return {**tree, "tasks": {**tasks, task: {**section, "validation-share": TASKS[task].planner_validation_share}}}


def check_validation_share(method: str, task: str, share: float) -> None:
    """Check that a planner that learns from rewards has a validation split.

    Raises:
        ValueError: The share is 0.
    """
    if not share:
        raise ValueError(
            f"{method} needs rewards, which the test split must not provide; set tasks.{task}.validation-share above 0"
        )


def _needs_rewards(tree: Mapping[str, Any]) -> bool:
    try:
        planner = sections.read_planner_options(tree.get("algorithm", {}), tree.get("method", ""))
    except ValidationError:  # reported when the section itself is validated
        return False
    return isinstance(planner, PlannerOptions) and planner.by_rewards
