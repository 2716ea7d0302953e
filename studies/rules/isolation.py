"""Held-out rules with an end that no training rule touches.

In data that list devices only through their rules, such a rule leaks: an isolated node says that there is one. 16 % of the
IFTTT set's test rules are of this kind.
"""

from dataclasses import replace

import numpy as np

from client.tasks.rules.data.homes import Examples, SplitHome
from common.arrays import Flags
from common.tasks.rules.vocabulary import Edges


def isolated(split: SplitHome, edges: Edges) -> Flags:
    """Return which of E edges have an end that no training rule touches, (E,)."""
    connected = np.zeros(len(split.home.devices), dtype=bool)
    connected[split.train.positives[:, :2].ravel()] = True
    return ~(connected[edges[:, 0]] & connected[edges[:, 1]])


def without_isolated(split: SplitHome) -> SplitHome:
    """Return the same home with held-out examples among connected nodes only."""
    validation, test = (_among_connected(split, examples) for examples in (split.validation, split.test))
    return replace(split, validation=validation, test=test)


def _among_connected(split: SplitHome, examples: Examples) -> Examples:
    return Examples(*(edges[~isolated(split, edges)] for edges in (examples.positives, examples.negatives)))
