"""Records of some units (homes, visitors, sensors, people, markets) under one vocabulary."""

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
    """Records of some units under a vocabulary.

    Args:
        units: Ordered by name.
        vocabulary: Names that indices refer to: the reader's argument, or else the names in the data.
        notes: Findings of the reader for the owner, such as dropped duplicates; without names of units.
    """

    units: tuple[UnitT, ...]
    vocabulary: VocabularyT
    notes: tuple[str, ...] = ()


AnyDataset = Dataset[Any, Any]
"""A data set of any task."""
