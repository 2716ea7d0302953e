"""Validation split of planners that learn from rewards (algorithms.md §4.8), and of early stopping."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from common.config import sections
from common.methods.planners import PlannerOptions
from common.tasks.registry import FIRST_TASK, TASKS


def add_validation_share(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a raw configuration with a validation split if the run needs one and none is set."""
    task, tasks = tree.get("task", FIRST_TASK), tree.get("tasks", {})
    section = tasks.get(task, {}) if isinstance(tasks, Mapping) else None
    if not isinstance(section, Mapping) or {"validation-share", "validation_share"} & section.keys():
        return tree
    if task not in TASKS or not (_needs_rewards(tree) or _stops_early(tree)):
        return tree
    return {**tree, "tasks": {**tasks, task: {**section, "validation-share": TASKS[task].planner_validation_share}}}


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
        planner = sections.read_planner_options(tree.get("algorithm", {}), tree.get("method", ""))
    except ValidationError:  # reported when the section itself is validated
        return False
    return isinstance(planner, PlannerOptions) and planner.by_rewards
