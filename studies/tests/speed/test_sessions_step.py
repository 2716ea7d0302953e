"""The benchmark's baseline computes what our network computes, and its examples are as long as it says."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from studies.sessions.loss import next_item_loss
from studies.speed.sessions_reference import ReferenceSessions
from studies.speed.sessions_step import batches, generate, twins

ITEMS = 50


def test_both_ways_have_the_same_loss_and_gradients() -> None:
    torch.manual_seed(0)
    examples, chosen = generate(40, ITEMS, np.random.default_rng(1)), np.arange(40)
    model, reference = twins(ITEMS)
    [batch] = batches(examples, chosen)
    vectors = model.vectors(*batch.graph)
    ours = next_item_loss(vectors, model.embedding.weight, batch.target).mean()
    data = ReferenceSessions(examples.prefixes, examples.targets.tolist()).slice(chosen)
    theirs = cross_entropy(reference(data), torch.tensor(data[-1]))
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(gradients(model, ours), gradients(reference, theirs), rtol=1e-4, atol=1e-6)


def gradients(model: torch.nn.Module, loss: Tensor) -> dict[str, Tensor]:
    torch.autograd.backward(loss)
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def test_batches_hold_each_chosen_example_once_and_like_lengths() -> None:
    examples = generate(350, ITEMS, np.random.default_rng(2))
    chosen = np.random.default_rng(3).permutation(350)[:250]
    cut = batches(examples, chosen)
    assert sorted(len(batch.target) for batch in cut) == [50, 100, 100]
    lengths = [torch.bincount(batch.owner)[1:] for batch in cut]
    ends = sorted((int(length.min()), int(length.max())) for length in lengths)
    assert all(most <= least for (_, most), (least, _) in pairwise(ends))
    expected = sorted(examples.targets[chosen].tolist())
    assert sorted(t for batch in cut for t in batch.target.tolist()) == expected


def test_sessions_are_as_long_as_yoochooses() -> None:
    examples = generate(20_000, ITEMS, np.random.default_rng(4))
    sessions = sum(len(prefix) == 1 for prefix in examples.prefixes)
    assert 1 + len(examples.prefixes) / sessions == pytest.approx(4.2, abs=0.1)
