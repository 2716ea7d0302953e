"""Evaluation of models on a client's data: metrics, scores, choice of a cluster."""

import json
import math
from dataclasses import replace
from functools import partial

from client.enrolment import EnrolledRun
from client.inference.model_choice import has_own_parameters, models_of_client
from client.privacy.transforms import run_or_zeros
from client.state import Store
from client.tasks.learner import HasBaselines, HasProperty, Learner, training_loss
from client.trainers.registry import build_trainer
from client.training.comparison import MEASURED, choose, measure_units, measure_used, to_document, to_paired, uses_of
from client.training.participant import Participant
from client.training.state import HEAD, load_group, return_to_round
from common.arrays import Arrays, check_like, group
from common.config.run import RunConfig
from common.methods.base import choose_lowest
from common.models import parameters
from common.tasks.registry import TASKS
from common.wire.messages import (
    AssignReply,
    AssignRequest,
    EvaluateReply,
    EvaluateRequest,
    Metrics,
    TrainRequest,
)

TIE_WEIGHT = 1e-6
"""Weight of the training loss in scores by L_p: it decides between models of equal violation."""


def evaluate_models(config: RunConfig, participant: Participant, split: str, *, final: bool) -> EvaluateReply:
    """Return metrics of the baselines and of every model the client has, with their weights.

    Of the finished model, also the metrics of what the client uses, chosen on validation data, and the sums of its
    differences to the simple baseline; the client stores all of them. The request of the participant has the shared model
    and the summed counts, and its steps are those of `ADAPT`.
    """
    options, learner, request = config.method_options, participant.learner, participant.request
    stored = participant.store.load(participant.run)
    state = return_to_round(participant.store, participant.run, stored, request.round)
    adapted = build_trainer(options).personalize(participant) if learner.examples else None
    state = state if adapted is None else adapted
    if final and state is not stored:
        participant.store.save(participant.run, state)
    metrics: Metrics = {}
    weights: Metrics = {}
    if isinstance(learner, HasBaselines):
        metrics, weights = map(dict, learner.baselines(split, request.statics))
    untrained = {name: p.detach().numpy() for name, p in learner.module.named_parameters()}  # a closed form sends none
    models = models_of_client(options, request.model or untrained, state)
    for prefix, model in models.items():
        means, counts = learner.evaluate(model, request.statics, split)
        metrics |= {f"{prefix}{name}": value for name, value in means.items()}
        weights |= {f"{prefix}{name}": count for name, count in counts.items()}
    if not final:
        return EvaluateReply(request.round, metrics, weights)
    choice, uses = next(iter(models)), dict[str, bool]()
    if config.task_options.validation_share and TASKS[config.task].comparison is not None:
        choice = choose(config, learner, models, request.statics, "validation")
        means, counts = measure_used(config, choice, models, (metrics, weights))
        metrics, weights, is_personal = metrics | means, weights | counts, has_own_parameters(config, request.model)
        uses = uses_of(config.task, choice, tuple(models), is_personal=is_personal)
    units, rivals = measure_units(learner, choice, models, request.statics, split)
    reply = EvaluateReply(request.round, metrics, weights)
    participant.store.write(participant.run, MEASURED, to_document(reply, units, rivals, uses))
    sent = uses if config.privacy.unit == "none" else {}  # these numbers are exact
    return replace(reply, paired=to_paired(learner.task, units, rivals, sent))


def assess_models(run: EnrolledRun, store: Store, request: AssignRequest, statics: Arrays) -> AssignReply:
    """Return the assignment score of each model, and the client's property if it is requested.

    The statics are without the client's own counts.

    Raises:
        WireError: A model does not match the run's.
        RefusedError: Training windows are requested and the run's configuration does not announce that.
    """
    learner, template = run.learner, parameters(run.learner.module)
    by_property = request.criterion == "property"
    upcoming = TrainRequest(request.round, request.enrolment, {})  # a repeated round starts from the same state
    head = {n: t.numpy() for n, t in load_group(store.load(run.run), upcoming, HEAD).items()}
    losses = {}
    for key in sorted({name.partition("/")[0] for name in request.models}):
        model = group(key, request.models)
        check_like(model, template, f"model {key}")
        score = partial(_assignment_score, learner, {**model, **head}, statics, by_property=by_property)
        losses[key] = run_or_zeros(score, float) if run.config.privacy.unit != "none" else score()
    inferred = learner.property() if isinstance(learner, HasProperty) else {}
    return AssignReply(request.round, losses, inferred if by_property else {})


def _assignment_score(learner: Learner, model: Arrays, statics: Arrays, *, by_property: bool) -> float:
    """Return the assignment score of a model; lower is better."""
    loss = training_loss(learner, model, statics)
    return learner.violation(model) + TIE_WEIGHT * loss if by_property and isinstance(learner, HasProperty) else loss


CLUSTER = "cluster.json"
"""Name of the document in a run's state: the cluster, and the round of its choice."""


def choose_cluster(
    client: str, run: EnrolledRun, store: Store, request: TrainRequest | EvaluateRequest, statics: Arrays
) -> int:
    """Return the cluster whose model has the lowest loss on the client's training data.

    A choice for training holds for `recluster-every` rounds, and for evaluations. The client's name breaks ties. The statics
    are without its own counts.
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
