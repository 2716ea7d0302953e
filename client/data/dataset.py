"""Data set of any task: records of units (homes, visitors, sensors …) under a vocabulary."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from client.data.sources import demo_range
from common.errors import VocabularyError
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
        clients: Names of the units of each client, if a column of the source partitions them.
    """

    units: tuple[UnitT, ...]
    vocabulary: VocabularyT
    notes: tuple[str, ...] = ()
    clients: tuple[tuple[str, ...], ...] = ()


AnyDataset = Dataset[Any, Any]
"""Data set of any task."""


def demo_dataset(
    source: Path | str,
    whole: int,
    generate: Callable[[int, int, int], tuple[UnitT, ...]],
    seed: int,
    own: VocabularyT,
    requested: VocabularyT | None,
) -> Dataset[VocabularyT, UnitT] | None:
    """Return the generated data set that a source names; None if the source is a file or folder.

    Args:
        source: Source of the data.
        whole: Number of units of the whole demo data.
        generate: Generator of units start … stop−1 from (start, stop, seed).
        seed: Seed of the generator.
        own: Vocabulary of the demo data.
        requested: Vocabulary of the run, if any.

    Raises:
        DataError: The range of units is malformed or empty.
        VocabularyError: The run has another vocabulary than the demo data.
    """
    if not (units := demo_range(source, whole)):
        return None
    if requested is not None and requested != own:
        raise VocabularyError(
            "the embedded data do not fit the vocabulary of this federation; set --data to your own data"
        )
    return Dataset(generate(*units, seed), own)
