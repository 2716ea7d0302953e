"""Vocabulary of the traffic task."""

from typing import Self

from pydantic import model_validator

from common.tasks.vocabulary import Vocabulary
from common.text import count

HOUR, DAY = 3600, 24 * 3600
"""Seconds."""


class SensorVariables(Vocabulary):
    """What every sensor of a federation measures, and how often."""

    variables: tuple[str, ...]
    """Names of the D variables, such as `volume`."""

    step_seconds: int = HOUR
    """Seconds between two readings; divides a day."""

    @model_validator(mode="after")
    def _measures_are_usable(self) -> Self:
        if not self.variables or "" in self.variables or len(set(self.variables)) < len(self.variables):
            raise ValueError("name at least one variable, and each once")
        if self.step_seconds < 1 or DAY % self.step_seconds:
            raise ValueError(f"a step of {duration(self.step_seconds)} does not divide a day")
        return self

    @classmethod
    def what(cls) -> str:
        """What the names name, for error texts."""
        return "variables"


def duration(seconds: int) -> str:
    """In words: `60 minutes`, `1 second`."""
    return count(seconds, "second") if seconds % 60 else count(seconds // 60, "minute")
