"""Held-out rules with an isolated end."""

from client.tasks.rules.data.homes import Device, Examples, Home, SplitHome, as_edges
from studies.rules.isolation import isolated, without_isolated


def test_isolated_test_rules_can_be_left_out() -> None:
    home = Home("ann", tuple(Device(str(k), 0) for k in range(4)), as_edges([(0, 1, 0), (1, 0, 1), (1, 2, 0)]))
    train = Examples(as_edges([(0, 1, 0)]), as_edges([]))
    test = Examples(as_edges([(1, 0, 1), (1, 2, 0)]), as_edges([(0, 1, 2), (3, 1, 0)]))
    split = SplitHome(home, train, Examples(as_edges([]), as_edges([])), test)
    assert isolated(split, test.positives).tolist() == [False, True]
    kept = without_isolated(split)
    assert kept.test.positives.tolist() == [[1, 0, 1]]
    assert kept.test.negatives.tolist() == [[0, 1, 2]]
    assert len(split.test.positives) == 2
