"""Validation split for planners that learn from rewards: held-out data, never the test split (algorithms.md §4.8)."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from common.config import sections
from common.methods.planners import PlannerOptions
from common.tasks.registry import FIRST_TASK, TASKS


def with_share(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a raw configuration with a validation split if its planner needs one and none is set."""
    task, tasks = given.get("task", FIRST_TASK), given.get("tasks", {})
    chosen = tasks.get(task, {}) if isinstance(tasks, Mapping) else None
    if not isinstance(chosen, Mapping) or {"validation-share", "validation_share"} & chosen.keys():
        return given
    if task not in TASKS or not _needs_rewards(given):
        return given
    return {**given, "tasks": {**tasks, task: {**chosen, "validation-share": TASKS[task].planner_validation_share}}}


def check_share(method: str, task: str, share: float) -> None:
    """Accept the validation split of a planner that learns from rewards.

    Raises:
        ValueError: It is empty.
    """
    if not share:
        raise ValueError(
            f"{method} goes by what rounds gain, which test data must not tell; set tasks.{task}.validation-share above 0"
        )


def _needs_rewards(given: Mapping[str, Any]) -> bool:
    try:
        planner = sections.planner_options(given.get("algorithm", {}), given.get("method", ""))
    except ValidationError:  # reported when the section itself is validated
        return False
    return isinstance(planner, PlannerOptions) and planner.by_rewards
