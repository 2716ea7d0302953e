"""Answers in closed form and by a visitor's own clicks, for evaluation, recommendations and exports."""

import numpy as np
import pytest
import torch

from client.tasks.sessions.baseline import HISTORY_FIRST, SESSION_FIRST, history_scores, own_weights
from client.tasks.sessions.data.visitors import Case, Visitor, as_clicks
from client.tasks.sessions.export import exportable_rows
from client.tasks.sessions.inference import network_inputs, next_items
from client.tasks.sessions.learner import SessionsLearner
from common.arrays import Arrays
from common.config.parse import parse
from common.tasks.sessions import slist
from common.tasks.sessions.vocabulary import Items
from deploy.serving.onnx_export import to_onnx
from tests.support.build import learner_of

ITEMS = Items(items=tuple("abcdefgh"))
CONFIG = parse({"method": "ridge", "task": "sessions"})
SESSIONS = tuple(as_clicks(s) for s in ([0, 1, 2], [0, 1, 3, 1], [5, 6], [6, 7, 6], [2, 0]))
VISITOR = Visitor("ann", SESSIONS, (Case(as_clicks([0]), 1), Case(as_clicks([6]), 7)))


@pytest.fixture(scope="module")
def learner() -> SessionsLearner:
    found: SessionsLearner = learner_of(CONFIG, ITEMS, [VISITOR])
    return found


@pytest.fixture(scope="module")
def solved(learner: SessionsLearner) -> Arrays:
    solved = slist.sizes(ITEMS, False)
    while solved[slist.STAGE] < 4:
        template, sent = slist.template(solved), learner.statistics(solved)
        total = {name: np.zeros(a.shape) for name, a in template.items()}
        for name, a in total.items():
            rows = sent.get(f"{name}@rows", slice(None))
            a[rows] = sent.get(f"{name}@values", sent.get(name))
        solved = slist.solve(solved, total, 0.0)
    return solved


def test_evaluation_and_recommendations_have_the_same_scores(learner: SessionsLearner, solved: Arrays) -> None:
    [first, second] = np.concatenate([*learner.scores({}, solved, "test")])
    np.testing.assert_array_equal(first, learner.next_items({}, solved, as_clicks([0]), SESSIONS))
    assert (first.argmax(), int(np.argsort(second)[-2])) == (1, 7)
    [answer, *_] = next_items(CONFIG, ITEMS, solved, as_clicks([0]), SESSIONS, 3)
    assert answer.item == "b"


def test_a_client_without_sessions_answers(solved: Arrays) -> None:
    late: SessionsLearner = learner_of(CONFIG, ITEMS, [])
    assert late.evaluate({}, solved, "test") == ({}, {})
    assert late.next_items({}, solved, as_clicks([0]), ()).argmax() in (0, 1)


def test_an_exported_network_computes_the_same(learner: SessionsLearner, solved: Arrays) -> None:
    export = exportable_rows(solved, len(ITEMS.items))
    inputs = network_inputs(CONFIG, ITEMS, solved, as_clicks([0, 6]), SESSIONS)
    logits = export.module(torch.from_numpy(inputs["index"]), torch.from_numpy(inputs["value"]))[0]
    expected = learner.next_items({}, solved, as_clicks([0, 6]), SESSIONS)
    np.testing.assert_allclose(logits.numpy(), expected, atol=1e-4)
    assert to_onnx(export, {"run": "r1"})


def test_a_visitor_s_baseline_has_the_order_that_ranks_its_sessions_better() -> None:
    unrelated = [as_clicks([k, k + 30, k]) for k in range(30)]
    returning = [as_clicks([k, 40, 41]) for k in range(30)]
    assert own_weights(unrelated) == SESSION_FIRST
    assert own_weights(returning) == HISTORY_FIRST
    scores = history_scores(as_clicks([5, 50]), [*unrelated, *[as_clicks([3, 4])] * 20], 60, "own history")
    assert scores.argsort()[-2:].tolist() == [5, 50]
    assert np.flatnonzero(history_scores(as_clicks([5, 50]), unrelated, 60, "recency")).tolist() == [5, 50]


def test_baselines_are_own_history_and_recency(learner: SessionsLearner) -> None:
    values, weights = learner.baselines("test", {})
    assert values == {"hr20_history": 1, "hr20_recency": 0}
    assert set(weights.values()) == {2}
