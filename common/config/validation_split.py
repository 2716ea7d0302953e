"""What planners are judged by: data that clients hold out of training, never the test part (algorithms.md §4.8)."""

from collections.abc import Mapping
from typing import Any

JUDGED = ("bgtplanner", "adap")
"""Methods that go by what rounds gain, unless told to go by the norm of updates."""

SHARE, OF_FEW = 0.1, 0.3
"""Of the training data, that is held out where nobody says how much; the latter of homes, which have few rules each."""


def with_share(given: Any) -> Any:
    """A configuration before it is checked, with something held out if its method needs that and it says nothing of it."""
    if not isinstance(given, Mapping) or not _judged(given):
        return given
    task, tasks = given.get("task", "rules"), given.get("tasks", {})
    own = tasks.get(task, {}) if isinstance(tasks, Mapping) else None
    if not isinstance(own, Mapping) or {"validation-share", "validation_share"} & own.keys():
        return given
    return {**given, "tasks": {**tasks, task: {**own, "validation-share": OF_FEW if task == "rules" else SHARE}}}


def _judged(given: Mapping[str, Any]) -> bool:
    """Whether the method goes by what rounds gain, to decide about it or to stop."""
    method, algorithms = given.get("method"), given.get("algorithm", {})
    own = algorithms.get(method, {}) if isinstance(algorithms, Mapping) else {}
    own = own if isinstance(own, Mapping) else {}
    return own.get("reward") != "norm" and (method in JUDGED or own.get("stop") == "plateau")


def check_share(method: str, task: str, share: float) -> None:
    """Accept the share that is held out for a method that goes by what rounds gain.

    Raises:
        ValueError: It is nothing.
    """
    if not share:
        raise ValueError(
            f"{method} goes by what rounds gain, which test data must not tell; set tasks.{task}.validation-share above 0"
        )
