"""Ratings learner: objectives, arrival, metrics, baselines, several raters, a rater without ratings."""

import numpy as np
import pytest
import torch
from torch.func import grad

from client.tasks.learner import HasProperty
from client.tasks.ratings.baseline import normal_scores, own_mean, predict, report
from client.tasks.ratings.data.generator import demo_raters
from client.tasks.ratings.data.raters import Rater, arrived
from client.tasks.ratings.data.reader import read_raters
from client.tasks.ratings.learner import RatingsLearner
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters, tensors
from common.options import Scalar
from common.tasks.ratings.task import rating_metrics
from common.tasks.ratings.vocabulary import demo_products
from common.wire.messages import TrainRequest
from tests.support.build import learner_of
from tests.support.files import folder_of

PRODUCTS = demo_products()
ANN, BOB, CYD = demo_raters(0, 3, seed=0)
SILENT = Rater("dan", np.zeros(0, np.int64), np.zeros(0))


def config(**options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {"method": "fedavg", "task": "ratings", "rounds": 4}
    return parse(flat | {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})


def learner(*raters: Rater, **options: Scalar) -> RatingsLearner:
    return learner_of(config(**options), PRODUCTS, raters)


def request(number: int = 1) -> TrainRequest:
    return TrainRequest(number, "toy:0", {})


def scores(seed: int = 0) -> Arrays:
    return {"scores": np.random.default_rng(seed).normal(size=240).astype(np.float32)}


def test_the_default_s_gradient_is_the_report_whatever_the_scores() -> None:
    of = learner(ANN)
    batch = of.batch(request())
    [split] = of.splits
    x = report(split.train, 240, of.options)
    gradient = grad(of.loss)(tensors(scores()), batch, {})
    np.testing.assert_allclose(gradient["scores"].numpy(), -x, atol=1e-7)
    assert float(of.loss(tensors(scores()), batch, {})) == pytest.approx(-float(scores()["scores"] @ x), rel=1e-5)


def test_several_raters_report_the_direction_of_their_sum() -> None:
    of = learner(ANN, BOB, SILENT)
    total = sum(report(split.train, 240, of.options) for split in of.splits)
    x = of.batch(request())["report"].numpy()
    np.testing.assert_allclose(x, total / np.linalg.norm(total), atol=1e-7)
    assert of.examples == 3


def test_the_papers_loss_is_the_rmse_of_the_own_ratings() -> None:
    of = learner(ANN, BOB, model="paper")
    model = parameters(of.module)
    errors = []
    for split in of.splits:
        guess = of.predictor(model)(split, split.train.items)
        errors += list(guess - split.train.values)
    loss = float(of.loss(tensors(model), of.batch(request()), {}))
    assert loss == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-5)


@pytest.mark.parametrize("model", ["default", "paper"])
def test_a_rater_without_ratings_takes_part_and_sends_zeros(model: str) -> None:
    of = learner(SILENT, model=model)
    params = parameters(of.module)
    gradient = grad(of.loss)(tensors(params), of.batch(request()), {})
    assert of.examples == 1
    assert not any(g.any() for g in gradient.values())
    assert (of.evaluate(params, {}, "test"), of.baselines("test", {})) == (({}, {}), ({}, {}))


@pytest.mark.parametrize("model", ["default", "paper"])
def test_a_round_trains_on_what_has_arrived(model: str) -> None:
    of = learner(ANN, model=model, tasks__ratings__arrival="online")
    [split] = of.splits
    whole = len(split.train)
    for number in (1, 2, 4):
        [train] = of.arrived_ratings(number)
        assert len(train) == arrived(whole, number, 4)
        assert train.items.tolist() == split.train.items[: len(train)].tolist()
        batch = of.batch(request(number))
        seen = int(batch["mask"].sum()) if model == "paper" else int(batch["report"].count_nonzero())
        assert seen == len(train)
    assert (
        whole // 2
        < len(of.arrived_ratings(1)[0])
        < len(of.arrived_ratings(2)[0])
        < whole
        == len(of.arrived_ratings(4)[0])
    )
    assert len(learner(ANN, model=model).arrived_ratings(1)[0]) == whole


def test_metrics_are_errors_of_the_personal_predictions() -> None:
    of, model = learner(ANN, BOB, SILENT), scores()
    z = normal_scores(model["scores"])
    guesses = [predict(z, split.train, split.test.items, of.options) for split in of.splits]
    truth = [split.test.values for split in of.splits]
    assert of.evaluate(model, {}, "test") == rating_metrics(np.concatenate(guesses), np.concatenate(truth))
    assert of.evaluate(model, {}, "validation") == ({}, {})


def test_baselines_by_hand() -> None:
    of = learner(ANN, BOB)
    truth = np.concatenate([split.test.values for split in of.splits])
    means = np.concatenate([np.full(len(s.test), own_mean(s.train, of.options)) for s in of.splits])
    metrics, weights = of.baselines("test", {})
    liked = (truth >= 0.5).mean()
    assert metrics == pytest.approx(
        {
            "rmse_local_mean": np.sqrt(np.mean((means - truth) ** 2)),
            "rmse_prior_mean": np.sqrt(np.mean((0.7 - truth) ** 2)),
            "rmse_half": np.sqrt(np.mean((0.5 - truth) ** 2)),
            "f1_all_liked": 2 * liked / (1 + liked),
        }
    )
    assert [weights[name] for name in ("rmse_local_mean", "rmse_prior_mean", "rmse_half")] == [len(truth)] * 3
    moved, _ = learner(ANN, BOB, tasks__ratings__prior=0.4).baselines("test", {})
    assert moved["rmse_prior_mean"] == pytest.approx(np.sqrt(np.mean((0.4 - truth) ** 2)))
    assert of.evaluate(parameters(of.module), {}, "test")[0]["rmse"] == pytest.approx(metrics["rmse_local_mean"])


def test_padding_of_a_stacked_cohort_changes_nothing() -> None:
    short, long = sorted((ANN, BOB), key=lambda rater: len(rater.items))
    of, other = learner(short, model="paper"), learner(long, model="paper")
    batch, wide = of.batch(request()), other.batch(request())["mask"].shape[1]
    padded = {n: torch.nn.functional.pad(t, (0, wide - t.shape[1])) for n, t in batch.items()}
    params = tensors(parameters(of.module))
    torch.testing.assert_close(of.loss(params, padded, {}), of.loss(params, batch, {}))
    assert of.size < other.size


def test_nothing_of_the_ratings_is_changed() -> None:
    before = ANN.ratings.copy(), ANN.items.copy()
    of = learner(ANN)
    of.evaluate(scores(), {}, "test")
    of.batch(request())
    np.testing.assert_array_equal(ANN.ratings, before[0])
    np.testing.assert_array_equal(ANN.items, before[1])
    assert of.step_inputs(3, torch.Generator()) == {}
    assert not isinstance(of, HasProperty)


@pytest.mark.parametrize(("name", "gain"), [("movielens-100k", 0.014), ("filmtrust", 0.002)])
def test_on_real_ratings_the_sum_of_reports_has_a_lower_error_than_the_own_means(name: str, gain: float) -> None:
    """Check explore-ratings.md §1, §5: own mean .2089 ± .0007 and .2406 ± .0023; reports without noise."""
    whole = read_raters(folder_of(name))
    learners = [learner_of(config(), whole.vocabulary, (rater,)) for rater in whole.units]
    total = np.sum([of.batch(request())["report"].numpy() for of in learners], axis=0)
    of = learner_of(config(), whole.vocabulary, whole.units)
    rmse, baseline = (
        of.evaluate({"scores": total}, {}, "test")[0]["rmse"],
        of.baselines("test", {})[0]["rmse_local_mean"],
    )
    assert baseline == pytest.approx({"movielens-100k": 0.2089, "filmtrust": 0.2406}[name], abs=0.005)
    assert rmse < baseline - gain
