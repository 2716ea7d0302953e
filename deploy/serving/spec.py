"""Export and local serving of a task's models, declared without torch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from common.errors import DataError
from common.options import Scalar
from common.text import hint, one_name

if TYPE_CHECKING:
    from client.data.dataset import AnyDataset
    from client.tasks.registry import ExportableNetwork, Network
    from common.arrays import Arrays
    from common.config.run import RunConfig
    from common.tasks.vocabulary import Vocabulary
    from deploy.tasks.run import TrainedRun

MAX_TOP, MAX_NAME = 100, 200
"""Maximum number of answers, and of characters of a name in a request."""


class Request(BaseModel):
    """Body of a request; unknown fields and non-finite numbers are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, str_max_length=MAX_NAME)


class RankingRequest(Request):
    """Body of a request for a ranked list."""

    top: int = Field(10, ge=1, le=MAX_TOP)
    """Number of answers."""


@dataclass(frozen=True)
class ModelAnswer:
    """Answers to a request.

    Args:
        items: Answers, best first: `what`, `score` and `why`, or the rows of a forecast.
        notes: Sentences about the answers.
    """

    items: Sequence[Mapping[str, Scalar | None]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Export:
    """Network to be exported, and all that its answers need besides.

    Args:
        network: The network.
        config: Configuration of the run that trained it.
        vocabulary: Vocabulary of that run.
        statics: Summed statistics that enter the inputs.
        notes: Sentences on the choice of parameters, for the model card.
    """

    network: "ExportableNetwork"
    config: "RunConfig"
    vocabulary: "Vocabulary"
    statics: "Arrays"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServedModel:
    """Exported model of a run, ready to answer.

    Args:
        run: Name of the run.
        config: Its configuration.
        vocabulary: Its vocabulary.
        statics: Summed statistics that enter the inputs.
        network: The exported network.
        dataset: Data of the file or of `--data`; None without data.
    """

    run: str
    config: "RunConfig"
    vocabulary: Any
    statics: "Arrays"
    network: "Network"
    dataset: "AnyDataset | None" = None

    def find(self, name: str, noun: str, remedy: str) -> Any:
        """Return the unit of that name, or the first for an empty name.

        Raises:
            DataError: The model has no data, or no unit of that name; `remedy` says what the request can state instead.
        """
        from deploy.tasks.run import find_unit

        if self.dataset is None:
            raise DataError(f"the server has no {noun}s; {remedy}, or start it with --data")
        return find_unit(self.dataset, name, "", noun)


@dataclass(frozen=True)
class Serving:
    """Export and answers of a task.

    Args:
        route: Last part of the path of requests, `/v1/<route>`.
        request: Class of their bodies.
        export: Return the network of a finished run to export, for the data set of one unit or for None. Raises ConfigError
            with a reason for a model that cannot be exported.
        answer: Answer a request; raises FedloomError for one that cannot be answered.
        limits: Uses for which the model is not made, for the model card.
        adds_sums: True if `answer` adds an exported network to the run's sums.
    """

    route: Literal["recommend", "forecast"]
    request: type[Request]
    export: "Callable[[TrainedRun, AnyDataset | None], Export]"
    answer: Callable[[ServedModel, Any], ModelAnswer]
    limits: str
    adds_sums: bool = False


def places_of(names: Iterable[str], vocabulary: Sequence[str], noun: str) -> list[int]:
    """Return the index of each name.

    Raises:
        DataError: Names are unknown; the message has all of them.
    """
    index, wanted = {name: k for k, name in enumerate(vocabulary)}, list(map(one_name, names))
    if unknown := list(dict.fromkeys(name for name in wanted if name not in index)):
        listed = ", ".join(f"'{name}'" for name in unknown)
        raise DataError(f"unknown {noun}: {listed}{hint(unknown[0], vocabulary)}")
    return [index[name] for name in wanted]
