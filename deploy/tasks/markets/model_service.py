"""Export and local serving of the markets task."""

from pydantic import Field

from client.data.dataset import AnyDataset
from common.options import Scalar
from deploy.serving.spec import MAX_NAME, Export, ModelAnswer, RankingRequest, ServedModel, Serving
from deploy.tasks.spec import TrainedRun

MAX_TITLE = 1000


class CompanionRequest(RankingRequest):
    """Item, by id or title, whose companions in a market are wanted; default: the first market."""

    item: str = Field(min_length=1, max_length=MAX_TITLE)
    market: str = Field("", max_length=MAX_NAME)


def export(run: TrainedRun, dataset: AnyDataset | None) -> Export:
    """Return the scorer or network of a run; with data, the personalized one of their client."""
    from client.inference.model_choice import trained_network
    from client.tasks.markets.export import exportable_network, exportable_scorer
    from common.tasks.markets.task import TASK
    from deploy.tasks.markets.model_choice import model_of

    trained, note = (run.model, "") if dataset is None else model_of(run, "")
    network, statics = trained_network(run.config, run.vocabulary, trained)
    if run.config.model == "paper":
        options, size = run.config.options_of(TASK), len(run.vocabulary.items)
        exported = exportable_network(network, trained, options, size)
    else:
        exported = exportable_scorer(trained["scorer.weight"][0])
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
