"""Export and local serving of the sessions task."""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from client.data.dataset import AnyDataset
from client.tasks.sessions.inference import network_inputs
from common.errors import DataError
from deploy.serving.spec import MAX_NAME, Export, ModelAnswer, RankingRequest, ServedModel, Serving, places_of
from deploy.tasks.spec import TrainedRun

if TYPE_CHECKING:
    from common.tasks.sessions.vocabulary import Clicks

MAX_CLICKS = 500


class SessionRequest(RankingRequest):
    """Session that is continued; without clicks, the last session of the user in the server's data."""

    clicks: list[str] = Field([], max_length=MAX_CLICKS)
    user: str = Field("", max_length=MAX_NAME)
    exclude_seen: bool = False
    """True to leave out items that the visitor has clicked."""


def export(run: TrainedRun, dataset: AnyDataset | None) -> Export:
    """Return the session network of a run."""
    from client.inference.model_choice import trained_network
    from client.tasks.sessions.export import exportable, exportable_rows
    from common.tasks.sessions import slist
    from common.tasks.sessions.task import TASK

    network, statics = trained_network(run.config, run.vocabulary, run.model)
    size, longest = len(run.vocabulary.items), run.config.options_of(TASK).max_length
    if slist.is_solved(statics):
        return Export(exportable_rows(statics, size), run.config, run.vocabulary, statics)
    exported = exportable(network, size, longest, paper=run.config.model == "paper")
    return Export(exported, run.config, run.vocabulary, statics)


def answer(model: ServedModel, request: SessionRequest) -> ModelAnswer:
    """Return the next items of a session."""
    from client.tasks.lists import ItemFilter
    from client.tasks.sessions.inference import list_items

    clicks, history = _session(model, request)
    logits = model.network(network_inputs(model.config, model.vocabulary, model.statics, clicks, history))[0]
    chosen = ItemFilter.seen(hide=request.exclude_seen)
    found = list_items(logits.astype(np.float64), model.vocabulary, model.statics, clicks, history, request.top, chosen)
    return ModelAnswer([{"what": one.item, "score": one.score, "why": one.why} for one in found])


def _session(model: ServedModel, request: SessionRequest) -> "tuple[Clicks, tuple[Clicks, ...]]":
    """Return the clicks, and earlier sessions of the visitor; without a named visitor of several, none."""
    clicks = np.array(places_of(request.clicks, model.vocabulary.items, "items"), np.int64)
    alone = model.dataset is not None and len(model.dataset.units) == 1
    if len(clicks) and not (request.user or alone):
        return clicks, ()
    visitor = model.find(request.user, "user", "give the clicks of the session")
    if len(clicks):
        return clicks, visitor.sessions
    if not visitor.sessions:
        raise DataError(f"{visitor.name} has no session; give the clicks of one")
    return visitor.sessions[-1], visitor.sessions[:-1]


SERVING = Serving(
    route="recommend",
    request=SessionRequest,
    export=export,
    answer=answer,
    limits="Not for conclusions about a visitor: it ranks items by clicks, and knows no reasons.",
)
