"""Inputs of an exported session network, without torch."""

from collections.abc import Sequence

from client.tasks.sessions.baseline import FeatureRows, VisitHistory, history_features
from client.tasks.sessions.data.graph_arrays import graph_arrays
from common.arrays import Arrays
from common.config.run import RunConfig
from common.tasks.sessions.counts import KEYS, VALUES, SharedRules
from common.tasks.sessions.task import TASK
from common.tasks.sessions.vocabulary import Clicks, Items


def network_inputs(
    config: RunConfig, items: Items, statics: Arrays, clicks: Clicks, history: Sequence[Clicks]
) -> Arrays:
    """Return the session's graph and, for the default model, features of the visitor's history."""
    graph = graph_arrays([clicks], config.options_of(TASK).max_length)
    if config.model == "paper":
        return graph
    rules = SharedRules(statics[KEYS], statics[VALUES], len(items.items)) if KEYS in statics else None
    index, value = FeatureRows.of([history_features(clicks, VisitHistory.of(history), rules)]).pad()
    return {**graph, "index": index, "value": value}
