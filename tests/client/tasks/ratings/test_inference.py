"""Suggestions of unrated products by a trained model, in the data's units."""

import numpy as np
import pytest
import torch

from client.inference.model_choice import fit_client_only
from client.tasks.lists import ItemFilter
from client.tasks.ratings.baseline import own_mean
from client.tasks.ratings.data.raters import Rated, Rater
from client.tasks.ratings.inference import suggestions
from common.config.parse import parse
from common.models import parameters, tensors
from common.tasks.ratings.vocabulary import ProductCatalogue
from common.wire.messages import TrainRequest
from tests.support.build import learner_of, task_model

PRODUCTS = ProductCatalogue(items=("tea", "coffee", "milk", "rum", "gin"), low=0.5, high=4)
ANN = Rater("ann", np.array([0, 3]), np.array([4.0, 3.0]))
CONFIG = parse({"method": "fedavg", "task": "ratings", "rounds": 5, "tasks.ratings.slope": 0.1})
PAPER = parse({"method": "fedavg", "task": "ratings", "rounds": 20, "model": "paper", "training.lr": 1.0})
SCORES = {"scores": np.array([9, 2, 3, 5, 1], np.float32)}


def test_best_first_without_what_is_rated_and_in_the_data_s_own_units() -> None:
    suggested = suggestions(CONFIG, PRODUCTS, SCORES, ANN, top=2)
    assert [s.product for s in suggested] == ["milk", "coffee"]
    mean = 0.5 + 3.5 * own_mean(Rated(ANN.items, (ANN.ratings - 0.5) / 3.5), CONFIG.task_options)
    assert suggested[0].own_mean == pytest.approx(mean)
    assert mean == pytest.approx((3.5 + 2.5 + 3 * 0.7 * 3.5) / 5 + 0.5)
    assert 4 >= suggested[0].rating > suggested[1].rating > 0.5


def test_before_training_everything_is_the_own_mean() -> None:
    nothing = {"scores": np.zeros(5, np.float32)}
    suggested = suggestions(CONFIG, PRODUCTS, nothing, ANN, 9)
    assert len(suggested) == 3
    assert [s.rating for s in suggested] == pytest.approx([s.own_mean for s in suggested])


def test_a_rater_without_ratings_gets_the_best_of_all() -> None:
    nobody = Rater("zoe", np.zeros(0, np.int64), np.zeros(0))
    assert [s.product for s in suggestions(CONFIG, PRODUCTS, SCORES, nobody, 2)] == ["tea", "rum"]


def test_a_rater_of_everything_gets_nothing() -> None:
    all_of_it = Rater("eve", np.arange(5), np.full(5, 4.0))
    assert suggestions(CONFIG, PRODUCTS, SCORES, all_of_it, 3) == []


def test_under_the_papers_model_the_own_embedding_is_made_anew_and_all_else_stays() -> None:
    trained = parameters(task_model(PAPER, PRODUCTS))
    learner = learner_of(PAPER, PRODUCTS, (ANN,))
    model = fit_client_only(PAPER, learner, trained)
    assert (model["user"] != trained["user"]).any()
    assert all((model[name] == a).all() for name, a in trained.items() if name != "user")
    batch = learner.batch(TrainRequest(1, "", {}))
    with torch.no_grad():
        before, after = (float(learner.loss(tensors(m), batch, {})) for m in (trained, model))
    assert after < before
    suggested = suggestions(PAPER, PRODUCTS, trained, ANN, 9)
    assert {s.product for s in suggested} == {"coffee", "milk", "gin"}
    assert {s.why for s in suggested} == {"like 'tea', which you rate highly"}
    titled = suggestions(PAPER, PRODUCTS, trained, ANN, 9, titles={"tea": "Green Tea"})
    assert {s.why for s in titled} == {"like 'Green Tea', which you rate highly"}


def test_rated_products_may_be_kept_and_others_excluded() -> None:
    nothing = {"scores": np.zeros(5, np.float32)}
    kept = suggestions(CONFIG, PRODUCTS, nothing, ANN, 9, ItemFilter(False, np.array([1])))
    assert [s.product for s in kept] == ["tea", "milk", "rum", "gin"], "ties by product"
    assert {s.why for s in kept} == {"learnt by the federation"}
    only = suggestions(CONFIG, PRODUCTS, nothing, ANN, 9, ItemFilter(True, np.array([1]), np.array([0, 1, 4])))
    assert [s.product for s in only] == ["gin"]
