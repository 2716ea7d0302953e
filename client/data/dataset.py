"""Data set of any task: records of units (homes, visitors, sensors …) under a vocabulary."""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from common.tasks.spec import VocabularyT


class Unit(Protocol):
    """Owner of records: one home, visitor, sensor, person or market."""

    @property
    def name(self) -> str:
        """Unique name within a data set."""


UnitT = TypeVar("UnitT", bound=Unit)


@dataclass(frozen=True, eq=False)
class Dataset(Generic[VocabularyT, UnitT]):
    """Records of units under a vocabulary.

    Args:
        units: Units, ordered by name.
        vocabulary: Names that indices refer to: the reader's argument, or the names in the data.
        notes: Messages of the reader to the owner, such as dropped duplicates; without names of units.
    """

    units: tuple[UnitT, ...]
    vocabulary: VocabularyT
    notes: tuple[str, ...] = ()


AnyDataset = Dataset[Any, Any]
"""Data set of any task."""
