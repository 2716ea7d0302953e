"""Export and local serving of the ratings task."""

import numpy as np
from pydantic import Field

from client.data.dataset import AnyDataset
from client.tasks.ratings.data.raters import Rater
from common.errors import ConfigError, DataError
from common.tasks.ratings.vocabulary import ProductCatalogue
from deploy.serving.spec import MAX_NAME, Export, ModelAnswer, RankingRequest, ServedModel, Serving, places_of
from deploy.tasks.spec import TrainedRun

MAX_RATINGS = 20_000


class RatingsRequest(RankingRequest):
    """Ratings of a person by product; without ratings, those of the user in the server's data."""

    ratings: dict[str, float] = Field({}, max_length=MAX_RATINGS)
    user: str = Field("", max_length=MAX_NAME)


def export(run: TrainedRun, dataset: AnyDataset | None) -> Export:
    """Return the rating model of a run.

    Raises:
        ConfigError: The paper's model is exported without a person's ratings.
    """
    from client.inference.model_choice import fit_client_only, trained_network
    from client.tasks.ratings.baseline import adjust_to_noise, normal_scores
    from client.tasks.ratings.export import ScoredRatings, SolvedRatings, StarRatings, exportable
    from client.tasks.ratings.learner import RatingsLearner
    from common.tasks.ratings import neighbours
    from common.tasks.ratings.task import TASK

    config, products = run.config, run.vocabulary
    task_run, size, paper = config.task_run(TASK, products), len(products.items), config.model == "paper"
    if not paper or neighbours.is_solved(run.model):
        options = adjust_to_noise(task_run.options, config.privacy, config.rounds, size)
        if neighbours.FACTORS in run.model:
            biases = run.model[neighbours.BIASES].astype(np.float64)
            solved = SolvedRatings(biases, *neighbours.factors_of(run.model), options)
            return Export(exportable(solved, size, paper=False), config, products, {})
        scores = run.model[neighbours.SCORES if neighbours.SCORES in run.model else "scores"]
        scored = ScoredRatings(normal_scores(scores), options)
        return Export(exportable(scored, size, paper=False), config, products, {})
    if dataset is None:
        raise ConfigError(
            f"model paper of run '{run.name}' has a vector of each person that never leaves their machine;"
            " add --data FILE --user NAME"
        )
    model = fit_client_only(config, RatingsLearner(task_run, dataset), run.model)
    network, _ = trained_network(config, products, model)
    return Export(exportable(StarRatings(network, size), size, paper=True), config, products, {"items": model["items"]})


def answer(model: ServedModel, request: RatingsRequest) -> ModelAnswer:
    """Return products that a person has not rated."""
    from client.tasks.ratings.inference import suggestions_by

    rater = rater_of(request, model.vocabulary) if request.ratings else model.find(request.user, "user", "give ratings")
    found = suggestions_by(model.network, model.config, model.vocabulary, model.statics, rater, request.top)
    notes = (f"the mean rating is {found[0].own_mean:.2f}",) if found else ()
    return ModelAnswer([{"what": one.product, "score": one.rating, "why": one.why} for one in found], notes)


def rater_of(request: RatingsRequest, products: ProductCatalogue) -> Rater:
    """Return the person of a request.

    Raises:
        DataError: A product is unknown, or a rating is outside the scale.
    """
    items = np.array(places_of(request.ratings, products.items, "products"), np.int64)
    values, order = np.array(list(request.ratings.values())), np.argsort(items)
    for name, value in request.ratings.items():
        if not products.low <= value <= products.high:
            raise DataError(
                f"the rating {value:g} of '{name}' is outside the scale {products.low:g} to {products.high:g}"
            )
    return Rater("", items[order], values[order])


SERVING = Serving(
    route="recommend",
    request=RatingsRequest,
    export=export,
    answer=answer,
    limits="Not for prices, credit or hiring: it predicts ratings of products only.",
)
