"""Export and local serving of the markets task, and the model that a market uses of a finished run."""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from client.data.dataset import AnyDataset
from common.arrays import Arrays
from common.errors import ConfigError
from common.options import Scalar
from deploy.serving.spec import MAX_NAME, Export, ModelAnswer, RankingRequest, ServedModel, Serving
from deploy.tasks.spec import TrainedRun

if TYPE_CHECKING:
    from client.inference.stored_models import StoredModel

MAX_TITLE = 1000


class CompanionRequest(RankingRequest):
    """Item, by id or title, whose companions in a market are wanted; default: the first market."""

    item: str = Field(min_length=1, max_length=MAX_TITLE)
    market: str = Field("", max_length=MAX_NAME)


def model_of(run: TrainedRun, client: str) -> tuple[Arrays, str]:
    """Return the model with its summed statistics, and a note about its origin.

    Another run may have the same name. So a stored model counts only if its vocabulary and its shared parameters are the run's.
    An empty name is that of the client that trained on the data.

    Raises:
        ConfigError: The named client stored nothing of this run.
        DataError: The data cannot be read.
        StateError: The client's state is damaged.
    """
    is_personal = client or not run.config.capabilities.closed_form  # sums are the same for all clients
    stored = run.find_stored(client) if is_personal else None
    is_of_run = stored and stored.vocabulary == run.vocabulary
    if stored and not (is_of_run and _is_equal({**stored.shared, **stored.statics}, run.model)):
        if client:
            raise ConfigError(
                f"--client {client}: its model is of another run '{run.name}' (other model or catalogue);"
                f" adapt it with fedloom join --adapt {run.name}, or remove --client"
            )
        stored = None
    note = f"by {_describe(stored, run.model)} run {run.name}"
    return ({**stored.model, **stored.statics} if stored else run.only_model), note


def _is_equal(left: Arrays, right: Arrays) -> bool:
    """Return True if the two have arrays in common, and these are equal."""
    common = left.keys() & right.keys()
    return bool(common) and all(np.array_equal(left[name], right[name]) for name in common)


def _describe(stored: "StoredModel | None", trained: Arrays) -> str:
    if stored is None:
        return "the shared model of"
    from client.inference.stored_models import SINCE

    if _is_equal(stored.model, trained):
        return f"the shared model, without parameters of client {stored.client}, of"
    return f"the personalized model of client {stored.client}{f'{SINCE},' if stored.grown else ''} of"


def export(run: TrainedRun, dataset: AnyDataset | None) -> Export:
    """Return the scorer or network of a run; with data, the personalized one of their client."""
    from client.inference.model_choice import trained_network
    from client.tasks.markets.export import exportable_network, exportable_scorer
    from common.tasks.markets import blend
    from common.tasks.markets.task import TASK

    trained, note = (run.model, "") if dataset is None else model_of(run, "")
    network, statics = trained_network(run.config, run.vocabulary, trained)
    if run.config.model == "paper" and not blend.is_solved(statics):
        options, size = run.config.options_of(TASK), len(run.vocabulary.items)
        exported = exportable_network(network, options, size)
    else:
        weight = statics[blend.WEIGHTS] if blend.is_solved(statics) else trained["scorer.weight"][0]
        exported = exportable_scorer(weight)
    return Export(exported, run.config, run.vocabulary, statics, (note,) if note else ())


def answer(model: ServedModel, request: CompanionRequest) -> ModelAnswer:
    """Return items of a market that go with an item."""
    from client.tasks.markets.inference import companions_by, item_named

    market = model.find(request.market, "market", "export the model with --data and --market")
    item = item_named(request.item, model.vocabulary)
    found = companions_by(model.network, model.config, model.vocabulary, model.statics, market, item, request.top)
    rows: list[dict[str, Scalar | None]] = [
        {"what": one.item, "title": one.title, "score": one.score, "why": one.why} for one in found
    ]
    return ModelAnswer(rows, (f"in market {market.name}",))


SERVING = Serving(
    route="recommend",
    request=CompanionRequest,
    export=export,
    answer=answer,
    limits="Not for prices or stock: it ranks items that people bought together.",
)
