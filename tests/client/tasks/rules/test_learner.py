"""Rules learner: Eq 2, evaluation weights, and removal of the client's own counts from the sums."""

import numpy as np
import pytest
import torch

from common.models import parameters, tensors
from common.tasks.rules.counts import offset_of
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


def test_training_adds_the_counts_of_other_clients_only() -> None:
    learner = learner_of(CONFIG, CATALOGUE, HOMES)
    own_counts, other_counts = learner.counts()["counts"], np.full((2, 3, 4), 2.0, np.float32)
    batch = learner.batch(TrainRequest(1, "toy:0", WORLD, statics={"counts": own_counts + other_counts}))
    np.testing.assert_array_equal(batch["offset"].numpy(), offset_of({"counts": other_counts}, CATALOGUE))
    assert not learner.batch(REQUEST)["offset"].any()


def test_counts_of_a_late_reply_are_not_subtracted_from_the_sums() -> None:
    learner = learner_of(CONFIG, CATALOGUE, HOMES)
    other_counts = learner.counts()["counts"] + 1
    other_counts.flat[other_counts.argmax()] = 0  # less than this client alone sent
    batch = learner.batch(TrainRequest(1, "toy:0", WORLD, statics={"counts": other_counts}))
    np.testing.assert_array_equal(batch["offset"].numpy(), offset_of({"counts": other_counts}, CATALOGUE))


def test_noised_sums_lose_the_part_that_the_client_sent() -> None:
    learner, sums = learner_of(CONFIG, CATALOGUE, HOMES), np.full((2, 3, 4), 4.0, np.float32)
    noised, own = {"counts": sums, "counts_noise": np.array([0.1], np.float32)}, sums / 2
    batch = learner.batch(TrainRequest(1, "toy:0", WORLD, statics={**noised, "counts_own": own}))
    np.testing.assert_allclose(batch["offset"].numpy(), offset_of({"counts": own}, CATALOGUE), rtol=1e-5)
    both = learner.evaluate(WORLD, noised, "test"), learner.evaluate(WORLD, {**noised, "counts_own": own}, "test")
    assert both[0] == both[1], "held-out rules are ranked with all counts"


def test_a_client_without_homes_has_nothing_to_train_or_measure() -> None:
    learner = learner_of(CONFIG, CATALOGUE, ())
    assert (learner.examples, learner.evaluate(WORLD, {}, "test"), learner.counts()["counts"].sum()) == (0, ({}, {}), 0)


def test_clients_of_a_process_share_one_model() -> None:
    first, second = (learner_of(CONFIG, CATALOGUE, [home]) for home in HOMES[:2])
    assert first.module is second.module


def test_homes_without_held_out_rules_are_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of(configured("fedavg", tasks__rules__test_share=0.05), CATALOGUE, HOMES)
    assert not any(len(split.test.positives) for split in learner.splits)
    monkeypatch.setattr(learner, "scores", None)
    assert learner.evaluate(WORLD, {}, "test") == ({}, {})
    assert not any(len(hits) for homes in learner.baseline_values({}, "test").values() for hits in homes)
