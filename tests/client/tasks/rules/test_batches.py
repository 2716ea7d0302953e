"""Padded batches: what stands where, and that the weighted loss is Eq 2."""

import numpy as np
import torch

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Device, Examples, Home, SplitHome, as_edges, split_homes
from client.tasks.rules.learner import collate
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.vocabulary import demo_catalogue

NONE = Examples(as_edges([]), as_edges([]))
CATALOGUE = demo_catalogue()
F, R = len(CATALOGUE.entities), len(CATALOGUE.relations)


def split_of(train: Examples, *entities: int) -> SplitHome:
    devices = tuple(Device(str(k), entity) for k, entity in enumerate(entities))
    return SplitHome(Home("ann", devices, train.positives), train, NONE, NONE)


def demo_splits(pools: int) -> tuple[SplitHome, ...]:
    return split_homes(demo_homes(0, 80, seed=0), R, RulesOptions(negatives=pools), seed=0)


def test_a_graph_stands_where_it_should() -> None:
    train = Examples(as_edges([(0, 1, 0), (0, 1, 2), (2, 1, 0), (1, 1, 1)]), as_edges([(1, 0, 0)]))
    batch = collate([split_of(train, 3, 0, 3), split_of(NONE, 1)], entities=4)
    assert batch.x[0].argmax(1).tolist() == [3, 0, 3]
    assert batch.x.sum(-1).tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch.adj[0].tolist() == [[0, 0, 0], [2, 1, 1], [0, 0, 0]]  # node 1 hears 0 twice, itself and 2 once
    assert batch.adj[1].sum() == 0
    assert batch.home_mask.tolist() == [True, False]
    assert batch.edges[0].tolist() == [*train.positives.tolist(), [1, 0, 0]]
    assert batch.labels[0].tolist() == [1, 1, 1, 1, 0]


def test_with_one_pool_the_loss_is_eq_2() -> None:
    splits = demo_splits(pools=1)
    batch = collate(splits, F)
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=batch.labels.shape)).float()
    bce = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels, reduction="none")
    for h, split in enumerate(splits):
        size = len(split.train.positives) + len(split.train.negatives)
        expected = bce[h, :size].mean() if len(split.train.positives) else torch.tensor(0.0)
        torch.testing.assert_close((batch.weights[h] * bce[h]).sum(), expected)


def test_more_pools_weigh_as_much_as_one() -> None:
    batch = collate(demo_splits(pools=5), F)
    trained = batch.home_mask
    torch.testing.assert_close(batch.weights[trained].sum(1), torch.ones(int(trained.sum())))
    torch.testing.assert_close((batch.weights * batch.labels).sum(1)[trained], torch.full((int(trained.sum()),), 0.5))
    assert (batch.weights[~trained] == 0).all()


def test_no_homes_make_an_empty_batch() -> None:
    assert collate([], F).x.shape == (0, 0, F)
