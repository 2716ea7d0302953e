"""Which layers of a task's model are its private head: what personalising methods leave with the client."""

from collections.abc import Collection

from common.config.run import Task

HEADS: dict[Task, tuple[str, ...]] = {
    "rules": ("predictor.",),
    "sessions": ("scale", "weight"),
    "traffic": ("head.", "network.head."),
    "ratings": ("user",),
    "markets": ("theta", "alpha", "kappa", "tower.output", "ids"),
}
"""Prefixes of parameter names: the predictor of rules; the blend with a person's own history, where the model has one; a
forecaster's dense layer, or the transformer's blocks (algorithms.md §3.7); a person's embedding; a market's
link function, prior and clusters (§5.3), the last layer of a tower, or its items' own vectors."""

OWN: dict[Task, tuple[str, ...]] = {"ratings": ("user",), "markets": ("ids",)}
"""Prefixes of the parameters that are a client's own whatever the method: they speak of one person, or, a row an item, of
what a market sells, and never leave."""


def head_of(task: Task, names: Collection[str]) -> frozenset[str]:
    """The private head among the parameters of those names; empty where the model has none."""
    return frozenset(name for name in names if name.startswith(HEADS[task]))


def own_of(task: Task, names: Collection[str]) -> frozenset[str]:
    """Parameters among those names that no method may share: each client keeps its own from round to round."""
    return frozenset(name for name in names if name.startswith(OWN.get(task, ())))
