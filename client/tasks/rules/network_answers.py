"""Inputs of an exported rule recommender, without torch."""

import numpy as np

from client.tasks.rules.data.homes import Home
from common.arrays import Arrays
from common.tasks.rules.counts import offset_of
from common.tasks.rules.vocabulary import RuleCatalogue


def network_inputs(home: Home, catalogue: RuleCatalogue, statics: Arrays) -> Arrays:
    """Return types and in-edges of a home's devices, and the offset; see `RuleRecommender.forward`."""
    n = len(home.devices)
    x, adj = np.zeros((1, n, len(catalogue.entities)), np.float32), np.zeros((1, n, n), np.float32)
    x[0, np.arange(n), [device.entity for device in home.devices]] = 1
    trigger, action, _ = home.rules.T
    np.add.at(adj[0], (action, trigger), 1)
    return {"x": x, "adj": adj, "offset": offset_of(statics, catalogue)}
