"""Rules learner: Eq 2, and evaluation weights."""

import numpy as np
import pytest
import torch

from common.models import parameters, tensors
from common.wire.messages import TrainRequest
from tests.support.build import learner_of, task_model
from tests.support.toys import CATALOGUE, configured, toy_homes

CONFIG = configured("fedavg", tasks__rules__negatives=1, tasks__rules__dropout=0.0)
HOMES = toy_homes(4)
WORLD = parameters(task_model(CONFIG, CATALOGUE))
REQUEST = TrainRequest(1, "toy:0", WORLD)


def test_the_loss_is_the_mean_over_homes_of_eq_2() -> None:
    """Check L_k = −1/(|E⁺|+|E⁻|) [Σ log p + Σ log(1−p)] on the scores of every rule."""
    learner = learner_of(CONFIG, CATALOGUE, HOMES)
    losses = []
    for split in learner.splits:
        p = 1 / (1 + np.exp(-learner.scores(tensors(WORLD), {}, split).astype(np.float64)))
        positive, negative = p[tuple(split.train.positives.T)], p[tuple(split.train.negatives.T)]
        losses.append(-(np.log(positive).sum() + np.log(1 - negative).sum()) / (len(positive) + len(negative)))
    inputs = {n: m[0] for n, m in learner.step_inputs(1, torch.Generator()).items()}
    loss = learner.loss(tensors(WORLD), learner.batch(REQUEST), inputs)
    assert float(loss) == pytest.approx(np.mean(losses), rel=1e-5)


def test_dropout_masks_keep_the_mean_and_come_from_the_generator() -> None:
    learner = learner_of(configured("fedavg", tasks__rules__dropout=0.25), CATALOGUE, HOMES)
    keep = learner.step_inputs(50, torch.Generator().manual_seed(0))["keep"]
    assert keep.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert float(keep.mean()) == pytest.approx(1.0, abs=0.05)
    assert torch.equal(keep, learner.step_inputs(50, torch.Generator().manual_seed(0))["keep"])


def test_a_metric_weighs_the_homes_it_is_the_mean_of() -> None:
    learner = learner_of(CONFIG, CATALOGUE, HOMES)
    metrics, weights = learner.evaluate(WORLD, {}, "test")
    each = [row for row in learner.each_home(WORLD, {}, "test") if row]
    assert metrics["mr0"] == pytest.approx(np.mean([row["mr0"] for row in each]))
    assert (weights["mr0"], weights["auc"]) == (len(each), sum("auc" in row for row in each))
    assert learner.evaluate(WORLD, {}, "validation") == ({}, {}), "nothing is held out for validation by default"


def test_a_client_without_homes_has_nothing_to_train_or_measure() -> None:
    learner = learner_of(CONFIG, CATALOGUE, ())
    assert (learner.examples, learner.evaluate(WORLD, {}, "test")) == (0, ({}, {}))


def test_clients_of_a_process_share_one_model() -> None:
    first, second = (learner_of(CONFIG, CATALOGUE, [home]) for home in HOMES[:2])
    assert first.module is second.module


def test_homes_without_held_out_rules_are_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of(configured("fedavg", tasks__rules__test_share=0.05), CATALOGUE, HOMES)
    assert not any(len(split.test.positives) for split in learner.splits)
    monkeypatch.setattr(learner, "scores", None)
    assert learner.evaluate(WORLD, {}, "test") == ({}, {})
    assert not any(len(hits) for homes in learner.baseline_values({}, "test").values() for hits in homes)
