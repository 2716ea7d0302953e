"""Vocabulary of the traffic task, and that of the generated demo sensors."""

from typing import Any, ClassVar, Self

from pydantic import model_validator

from common.errors import DataError
from common.tasks.vocabulary import Vocabulary
from common.text import count

HOUR, DAY = 3600, 24 * 3600
"""Seconds of an hour and of a day."""


class SensorVariables(Vocabulary):
    """Vocabulary of the traffic task: variables of every sensor and the time step."""

    is_listed: ClassVar[bool] = False

    variables: tuple[str, ...]
    """Names of the D variables, such as `volume`."""

    step_seconds: int = HOUR
    """Seconds between two readings; divides a day."""

    @model_validator(mode="after")
    def _measures_are_usable(self) -> Self:
        if not self.variables or "" in self.variables or len(set(self.variables)) < len(self.variables):
            raise ValueError("the list of variables is empty, or a name is empty or listed twice")
        if self.step_seconds < 1 or DAY % self.step_seconds:
            raise ValueError(f"the step of {duration(self.step_seconds)} does not divide a day")
        return self

    def _extend(self, field: str, values: Any, other: Self) -> Any:
        """Return the values of a field, which every sensor of a model shares.

        Raises:
            DataError: They are not equal.
        """
        if values != getattr(other, field):
            raise DataError(f"vocabularies of {self.noun()} differ in {field}: {values} and {getattr(other, field)}")
        return values

    @classmethod
    def noun(cls) -> str:
        """Return the noun of the names, for messages."""
        return "variables"


def duration(seconds: int) -> str:
    """Return the duration in words: `60 minutes`, `1 second`."""
    return count(seconds, "second") if seconds % 60 else count(seconds // 60, "minute")


def demo_variables() -> SensorVariables:
    """Return the demo's variable: vehicles per hour."""
    return SensorVariables(variables=("volume",))
