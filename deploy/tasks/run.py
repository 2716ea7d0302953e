"""Finished run whose model a task applies to data, and units of the data by their names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from common.errors import ConfigError, DataError
from common.text import hint, one_name

if TYPE_CHECKING:
    from client.data.dataset import AnyDataset
    from client.inference.stored_models import StoredModel
    from client.tasks.lists import Titles
    from common.arrays import Arrays
    from common.config.run import RunConfig


@dataclass(frozen=True)
class TrainedRun:
    """Finished run, and data to which its model is applied.

    Args:
        name: Name of the run.
        config: Its configuration.
        vocabulary: Its vocabulary.
        model: The model as the server saved it, with the summed statistics from which it started.
        data: Source of the data.
        read: Read the data under the run's vocabulary; the argument names a file of records to hold out, or is empty.
        find_stored: Find the model that a client on this machine stored of the run; the argument is its name, or empty
            for the client that trained on these data. None if another checkpoint is chosen.
        about: Round of the model.
        read_titles: Read the titles of items that stand beside the data, item -> title.
        baseline: Name the baseline that is better than that model on held-out parts of these data; empty if none is.
    """

    name: str
    config: "RunConfig"
    vocabulary: Any
    model: "Arrays"
    data: str
    read: Callable[[str], "AnyDataset"]
    find_stored: Callable[[str], "StoredModel | None"]
    about: str = ""
    read_titles: "Callable[[], Titles]" = dict
    baseline: "Callable[[Arrays], str]" = lambda model: ""

    def unit(self, name: str, noun: str, test: str = "") -> Any:
        """Return the unit of the data of that name; `test` names a file of records to hold out."""
        return find_unit(self.read(test), name, self.data, noun)

    @property
    def only_model(self) -> "Arrays":
        """The model, if the run trained one for all clients.

        Raises:
            ConfigError: The run trained a model per cluster.
        """
        if any(name.partition("/")[0].isdigit() for name in self.model):
            raise ConfigError(f"run '{self.name}' has a model for each cluster of clients, and none for new data")
        return self.model


def find_unit(dataset: "AnyDataset", name: str, data: str, noun: str) -> Any:
    """Return the unit of that name, or the first for an empty name.

    `data` and `noun` are the source of the data and the noun of the unit, for the error.

    Raises:
        DataError: No unit has that name.
    """
    name, units = one_name(name), {unit.name: unit for unit in dataset.units}
    if name and name not in units:
        raise DataError(f"no {noun} '{name}' among its {len(units)} {noun}s{hint(name, units)}", data)
    return units[name or next(iter(units))]
