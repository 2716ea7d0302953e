"""Evaluation of models on a client's data: metrics, scores, choice of a cluster."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from client.enrolment import EnrolledRun
from client.inference.model_choice import has_own_parameters, models_of_client
from client.privacy.transforms import run_or_zeros
from client.state import ClientMemory, Store
from client.tasks.learner import PROPERTY, HasBaselines, HasProperty, Learner
from client.trainers.registry import build_trainer
from client.training.comparison import MEASURED, choose, measure_units, measure_used, to_document, to_paired, uses_of
from client.training.foresight import LOSS, Question, foreseen, training_loss
from client.training.participant import Participant
from client.training.state import HEAD, load_group, return_to_round
from common.arrays import Arrays, check_like, group
from common.config.run import RunConfig
from common.methods.base import choose_lowest
from common.metrics import SUMS_ALONE
from common.models import parameters
from common.tasks.registry import TASKS
from common.wire.messages import AssignReply, AssignRequest, EvaluateReply, EvaluateRequest, Metrics, TrainRequest

TIE_WEIGHT = 1e-6
"""Weight of the training loss in scores by L_p: it decides between models of equal violation."""


def evaluate_models(
    config: RunConfig, participant: Participant, split: str, *, final: bool, with_baselines: bool = True
) -> EvaluateReply:
    """Return metrics of the baselines and of every model the client has, with their weights.

    Of the finished model, also the metrics of what the client uses, chosen on validation data, and the sums of its
    differences to the simple baseline; the client stores all of them. If a network has trained on top of a closed form, this
    is one of the choices. The request of the participant has the shared model and what is solved, and its steps are those of
    `ADAPT`. Without `with_baselines`, baselines are measured only where the client uses one.
    """
    options, learner, request = config.method_options, participant.learner, participant.request
    stored = participant.store.load(participant.run)
    state = return_to_round(participant.store, participant.run, stored, request.round)
    adapted = build_trainer(options).personalize(participant) if learner.examples else None
    state = state if adapted is None else adapted
    if final and state is not stored:
        participant.store.save(participant.run, state)
    models = _models_of(config, participant, state, final=final)
    with foreseen(_questions(config, learner, models, request.statics, split, final=final)):
        return _measure(config, participant, models, split, final=final, with_baselines=with_baselines)


def _measure(
    config: RunConfig,
    participant: Participant,
    models: dict[str, Arrays],
    split: str,
    *,
    final: bool,
    with_baselines: bool,
) -> EvaluateReply:
    learner, request = participant.learner, participant.request
    choice, uses = next(iter(models)), dict[str, bool]()
    if final and _chooses(config):
        choice = choose(config, learner, models, request.statics, "validation")
    metrics: Metrics = {}
    weights: Metrics = {}
    if isinstance(learner, HasBaselines) and (with_baselines or choice not in models):
        metrics, weights = map(dict, learner.baselines(split, request.statics))
    for prefix, model in models.items():
        means, counts = learner.evaluate(model, request.statics, split)
        metrics |= {f"{prefix}{name}": value for name, value in means.items()}
        weights |= {f"{prefix}{name}": count for name, count in counts.items()}
    if not final:
        return EvaluateReply(request.round, metrics, weights)
    if _chooses(config):
        means, counts = measure_used(config, choice, models, (metrics, weights))
        metrics, weights, is_personal = metrics | means, weights | counts, has_own_parameters(config, request.model)
        uses = uses_of(config.task, choice, tuple(models), is_personal=is_personal)
    units, rivals = measure_units(learner, choice, models, request.statics, split, with_rivals=with_baselines)
    reply = EvaluateReply(request.round, metrics, weights)
    participant.store.write(participant.run, MEASURED, to_document(reply, units, rivals, uses))
    sent = uses if config.privacy.unit == "none" else {}  # these numbers are exact
    return replace(reply, paired=to_paired(learner.task, units, rivals, sent))


def _models_of(config: RunConfig, participant: Participant, state: ClientMemory, *, final: bool) -> dict[str, Arrays]:
    """Return the client's models by prefix of their metrics; the empty one is of the closed form alone."""
    models = models_of_client(config.method_options, participant.request.model, state)
    return models | ({SUMS_ALONE.prefix: {}} if config.first and final else {})


def _chooses(config: RunConfig) -> bool:
    """Return True if a client chooses on validation data what it uses."""
    return bool(config.task_options.validation_share) and TASKS[config.task].comparison is not None


def _questions(
    config: RunConfig, learner: Learner, models: Mapping[str, Arrays], statics: Arrays, split: str, *, final: bool
) -> list[Question]:
    asked = [*{id(model): model for model in models.values()}.values()]
    kinds = {split, "validation"} if final and _chooses(config) else {split}
    return [Question(learner, kind, asked, statics) for kind in sorted(kinds)]


def foresee_evaluation(config: RunConfig, participant: Participant, split: str, *, final: bool) -> list[Question]:
    """Return the questions of `evaluate_models`; none if the client first adapts its model."""
    store, request = participant.store, participant.request
    if config.capabilities.own_model == "adapted":
        return []
    state = return_to_round(store, participant.run, store.load(participant.run), request.round)
    models = _models_of(config, participant, state, final=final)
    return _questions(config, participant.learner, models, request.statics, split, final=final)


def foresee_assignment(run: EnrolledRun, store: Store, request: AssignRequest) -> list[Question]:
    """Return the questions of `assess_models`."""
    models = [{**model, **_head(run, store, request)} for model in _models(run, request).values()]
    kinds = (LOSS, PROPERTY) if request.criterion == "property" else (LOSS,)
    return [Question(run.learner, kind, models, request.statics) for kind in kinds]


def _head(run: EnrolledRun, store: Store, request: AssignRequest) -> Arrays:
    """Return the client's own layers; a repeated round starts from the same ones."""
    upcoming = TrainRequest(request.round, request.enrolment, {})
    return {n: t.numpy() for n, t in load_group(store.load(run.run), upcoming, HEAD).items()}


def _models(run: EnrolledRun, request: AssignRequest) -> dict[str, Arrays]:
    models = {key: group(key, request.models) for key in sorted({n.partition("/")[0] for n in request.models})}
    for key, model in models.items():
        check_like(model, parameters(run.learner.module), f"model {key}")
    return models


def assess_models(run: EnrolledRun, store: Store, request: AssignRequest) -> AssignReply:
    """Return the assignment score of each model, and the client's property if it is requested.

    Raises:
        WireError: A model does not match the run's.
        RefusedError: Training windows are requested and the run's configuration does not announce that.
    """
    learner = run.learner
    by_property = request.criterion == "property"
    head, losses = _head(run, store, request), {}
    for key, model in _models(run, request).items():
        score = partial(_assignment_score, learner, {**model, **head}, request.statics, by_property=by_property)
        losses[key] = run_or_zeros(score, float) if run.config.privacy.unit != "none" else score()
    inferred = learner.property() if isinstance(learner, HasProperty) else {}
    return AssignReply(request.round, losses, inferred if by_property else {})


def _assignment_score(learner: Learner, model: Arrays, statics: Arrays, *, by_property: bool) -> float:
    """Return the assignment score of a model; lower is better."""
    loss = training_loss(learner, model, statics)
    return learner.violation(model) + TIE_WEIGHT * loss if by_property and isinstance(learner, HasProperty) else loss


CLUSTER = "cluster.json"
"""Name of the document in a run's state: the cluster, and the round of its choice."""


def choose_cluster(client: str, run: EnrolledRun, store: Store, request: TrainRequest | EvaluateRequest) -> int:
    """Return the cluster whose model has the lowest loss on the client's training data.

    A choice for training holds for `recluster-every` rounds, and for evaluations. The client's name breaks ties.
    """
    trains, every = isinstance(request, TrainRequest), run.config.capabilities.choice_rounds
    last = json.loads(store.read(run.run, CLUSTER) or "{}")
    if last and (not trains or 0 < request.round - last["round"] < every):
        return int(last["cluster"])
    asked = AssignRequest(request.round, request.enrolment, request.model, "loss", statics=request.statics)
    losses = assess_models(run, store, asked).losses
    scores = [losses[str(j)] for j in range(len(losses))]
    cluster = choose_lowest(client, [score if math.isfinite(score) else math.inf for score in scores])
    if trains:
        store.write(run.run, CLUSTER, json.dumps({"cluster": cluster, "round": request.round}).encode())
    return cluster
