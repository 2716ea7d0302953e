import numpy as np
import pytest
import torch

from client.tasks.rules.data.homes import Device, Examples, Home, SplitHome
from studies.rules.baselines import count_baseline, examples_of
from studies.rules.convolution import Convolved
from studies.rules.experiments import COUNTS
from studies.rules.factors import Factors, Pairs, factorize
from studies.rules.measure import validation_loss

ENTITIES, RELATIONS = 3, 4


def _home(
    user: str, types: list[int], positives: list[tuple[int, int, int]], negatives: list[tuple[int, int, int]]
) -> SplitHome:
    def edges(rows: list[tuple[int, int, int]]) -> np.ndarray:
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    home = Home(user, tuple(Device(f"{k}", kind) for k, kind in enumerate(types)), edges(positives))
    nothing = Examples(edges([]), edges([]))
    return SplitHome(
        home, Examples(edges(positives), edges(negatives)), Examples(edges(positives), edges(negatives)), nothing
    )


@pytest.fixture
def splits() -> list[SplitHome]:
    """Relation 0 runs from type 0 to type 1 in every home, relation 3 nowhere."""
    first = _home("u", [0, 1, 2], [(0, 1, 0), (0, 1, 1)], [(1, 0, 3), (2, 1, 2)])
    second = _home("v", [0, 1, 1], [(0, 1, 0), (0, 2, 0)], [(1, 0, 3), (2, 0, 2)])
    return [first, second, _home("empty", [0], [], [])]


def test_examples_hold_types_and_homes_have_equal_weight(splits: list[SplitHome]) -> None:
    data = examples_of(splits)
    assert data.triples[data.home.numpy() == 1].tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 3], [1, 0, 2]]
    assert [float(data.weights[data.home == k].sum()) for k in (0, 1)] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("key", COUNTS)
def test_counts_score_every_rule_and_frequent_ones_higher(splits: list[SplitHome], key: str) -> None:
    logits = count_baseline(splits, ENTITIES, RELATIONS, key)(splits[0])
    assert logits.shape == (3, 3, RELATIONS)
    assert logits[0, 1, 0] > logits[0, 1, 3]


def test_only_the_sides_depend_on_the_direction(splits: list[SplitHome]) -> None:
    relation, sides = (
        count_baseline(splits, ENTITIES, RELATIONS, key)(splits[0]) for key in ("counts-relation", "counts-sides")
    )
    assert relation[0, 1, 0] == relation[1, 0, 0]
    assert sides[0, 1, 0] > sides[1, 0, 0]


def test_a_rule_is_left_out_of_its_own_counts() -> None:
    """If every relation occurs once, its count without itself is 0, as for a non-rule: counts carry no information."""
    lonely = [_home(f"{k}", [0, 1], [(0, 1, k)], [(1, 0, (k + 1) % RELATIONS)]) for k in range(RELATIONS)]
    lonely = [*lonely, _home("none", [0], [], [])]
    logits = count_baseline(lonely[:1], 2, RELATIONS, "counts-relation")(lonely[0])
    assert logits == pytest.approx(np.zeros_like(logits), abs=1e-6)


NETWORKS = pytest.mark.parametrize("network", [Factors, Convolved])


@NETWORKS
def test_factorization_learns_the_rules_of_each_home(splits: list[SplitHome], network: type[Factors]) -> None:
    reports = list(factorize(splits, ENTITIES, RELATIONS, network, rate=0.05, steps=60, report_every=30, seed=0))
    assert [step for step, _ in reports] == [30, 60]
    losses = [validation_loss(splits, score) for _, score in reports]
    assert losses[1] < losses[0] < np.log(2)


@NETWORKS
def test_a_rule_without_examples_has_the_biases_alone(splits: list[SplitHome], network: type[Factors]) -> None:
    *_, (_, score) = factorize(splits, ENTITIES, RELATIONS, network, rate=0.05, steps=30, report_every=30, seed=0)
    logits = score(splits[0])
    assert logits[2, 2, 3] == logits[2, 2, 1] == logits[0, 2, 0]
    assert score(splits[2]).shape == (1, 1, RELATIONS)


def test_convolution_means_over_neighbours_and_drops_messages_in_training_alone() -> None:
    pairs = Pairs(2, 3, torch.tensor([[0, 0, 1], [0, 1, 1]]))
    network = Convolved(pairs, torch.Generator().manual_seed(0)).eval()
    with torch.no_grad():
        users, rules = network.factors()
        first = (network.rule[0] / 2**0.5 + network.rule[1] / 2).relu()
        assert torch.allclose(users[0], first)
        assert torch.equal(rules[2], torch.zeros_like(rules[2]))
        assert torch.equal(network.factors()[0], users)
        dropped = [network.train().factors()[0] for _ in range(8)]
    assert any(not torch.equal(one, users) for one in dropped)
