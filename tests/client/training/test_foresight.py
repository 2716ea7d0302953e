"""Foresight: clients that answer stacked measure what each of them measures alone."""

import numpy as np
import pytest
import torch

from client.data.read import partition, read_all
from client.tasks.learner import AnswersTogether, HasProperty, Learner
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.training.foresight import LOSS, Question, ask, foreseen, training_loss
from common.arrays import Arrays
from common.config.parse import parse
from common.models import parameters

TASKS = {"rules": "demo:0-6", "traffic": "demo:0-3", "ratings": "demo:0-6"}


def opened(task: str) -> tuple[list[Learner], list[Arrays]]:
    """Return the learners of demo data, and two models."""
    model = {"model": "paper"} if task == "ratings" else {}
    config = parse({"run-id": "foreseen", "rounds": 1, "task": task, "privacy.unit": "none", **model})
    data = read_all(task, TASKS[task])
    learners = [build_learner(config, part) for part in partition(data, 0, unit=CLIENT_TASKS[task].unit)]
    draw, start = torch.Generator().manual_seed(0), parameters(learners[0].module)
    return learners, [{n: a + 0.1 * torch.randn(a.shape, generator=draw).numpy() for n, a in start.items()}, start]


def measured(learner: Learner, models: list[Arrays]) -> list[float]:
    """Return all that a client's replies have of these models."""
    values = [value for model in models for _, value in sorted(learner.evaluate(model, {}, "test")[0].items())]
    values += [training_loss(learner, model, {}) for model in models]
    return values + [learner.violation(model) for model in models if isinstance(learner, HasProperty)]


@pytest.mark.parametrize("own_layers", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_stacked_clients_measure_what_each_measures_alone(
    task: str, own_layers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    learners, models = opened(task)
    each = [[{**m, next(iter(m)): next(iter(m.values())) + k} for m in models] for k in range(len(learners))]
    of_client = each if own_layers else [models] * len(learners)
    alone = [measured(learner, own) for learner, own in zip(learners, of_client, strict=True)]
    calls = []
    kind = type(learners[0])
    assert isinstance(learners[0], AnswersTogether)
    answer = kind.answer
    monkeypatch.setattr(kind, "answer", lambda self, *of: calls.append(self) or answer(self, *of))
    kinds = ("test", LOSS, "property") if isinstance(learners[0], HasProperty) else ("test", LOSS)
    with foreseen(Question(o, k, m, {}) for o, m in zip(learners, of_client, strict=True) for k in kinds):
        before = len(calls)
        stacked = [measured(learner, own) for learner, own in zip(learners, of_client, strict=True)]
        assert len(calls) == before, "a client asks no network of its own"
        first = ask(learners[0], "test", of_client[0][0], {})
        assert ask(learners[0], "test", {**of_client[0][0]}, {}) is first
    for one, other in zip(alone, stacked, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6)
