"""Cluster of a client in secure sums: the client chooses it, and nobody else learns it."""

import json
import math

from client.enrolment import EnrolledRun
from client.state import Store
from client.tasks.learner import check_model
from client.training.evaluation import assess_models
from common.arrays import Arrays, group
from common.cluster_choice import choose_lowest
from common.errors import WireError
from common.wire.messages import AssignRequest, EvaluateRequest, TrainRequest

CLUSTER = "cluster.json"
"""Name of the document in a run's state: the cluster, and the round of its choice."""


def split_models(run: EnrolledRun, model: Arrays) -> list[Arrays]:
    """Return the models of a request: one for each cluster where the client itself chooses, else one.

    Raises:
        WireError: They do not match the run's.
    """
    clusters = run.config.capabilities.clusters if run.helpers else 0
    models = [group(str(j), model) for j in range(clusters)] or [model]
    if sum(map(len, models)) != len(model):
        raise WireError(f"model: the request has other models than those of {clusters} clusters")
    for one in models:
        check_model(one, run.learner.module)
    return models


def choose_cluster(
    client: str, run: EnrolledRun, store: Store, request: TrainRequest | EvaluateRequest, statics: Arrays
) -> int:
    """Return the cluster whose model has the lowest loss on the client's training data.

    A choice for training holds for `recluster-every` rounds, and for evaluations.

    Args:
        client: Name of the client; it breaks ties.
        run: The run and the client's data.
        store: Client state, for the choice.
        request: Request with the K models.
        statics: Untrained inputs of the models, without the client's own counts.
    """
    trains, every = isinstance(request, TrainRequest), run.config.capabilities.choice_rounds
    last = json.loads(store.read(run.run, CLUSTER) or "{}")
    if last and (not trains or 0 < request.round - last["round"] < every):
        return int(last["cluster"])
    asked = AssignRequest(request.round, request.enrolment, request.model, "loss")
    losses = assess_models(run, store, asked, statics).losses
    scores = [losses[str(j)] for j in range(len(losses))]
    cluster = choose_lowest(client, [score if math.isfinite(score) else math.inf for score in scores])
    if trains:
        store.write(run.run, CLUSTER, json.dumps({"cluster": cluster, "round": request.round}).encode())
    return cluster
