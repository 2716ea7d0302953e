"""Evaluation of models on a client's data: metrics, scores, choice of a cluster."""

import json
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from client.enrolment import EnrolledRun
from client.inference.model_choice import has_own_parameters, models_of_client
from client.privacy.transforms import run_or_zeros
from client.state import Store
from client.tasks.learner import PROPERTY, HasProperty, Learner
from client.trainers.registry import build_trainer
from client.training.comparison import MEASURED, choose, measure_units, measure_used, to_document, to_paired, uses_of
from client.training.foresight import LOSS, Question, training_loss
from client.training.participant import Participant
from client.training.state import HEAD, load_group, return_to_round
from common.arrays import Arrays, check_like, group
from common.config.run import RunConfig
from common.methods.base import choose_lowest
from common.metrics import SUMS_ALONE
from common.models import parameters
from common.registry import naming_packages
from common.tasks.registry import TASKS
from common.wire.messages import AssignReply, AssignRequest, EvaluateReply, EvaluateRequest, Metrics, TrainRequest

TIE_WEIGHT = 1e-6
"""Weight of the training loss in scores by L_p: it decides between models of equal violation."""


@dataclass(frozen=True)
class Measurement:
    """Models of a client that are to be measured.

    If a network has trained on top of a closed form, the finished models have one of the closed form alone.

    Args:
        config: Configuration of the run.
        participant: The client; its request has the shared model and what is solved, and its steps are those of `ADAPT`.
        models: Every model that the client has, by prefix of its metrics.
        split: Data split of the measurement.
        final: True if the model is finished.
    """

    config: RunConfig
    participant: Participant
    models: dict[str, Arrays]
    split: str
    final: bool

    @property
    def questions(self) -> list[Question]:
        """Questions to the models that `reply` asks."""
        asked = [*{id(model): model for model in self.models.values()}.values()]
        kinds = {self.split, "validation"} if self.final and _chooses(self.config) else {self.split}
        learner, statics = self.participant.learner, self.participant.request.statics
        return [Question(learner, kind, asked, statics) for kind in sorted(kinds)]

    def reply(self, *, with_baselines: bool = True) -> EvaluateReply:
        """Return metrics of the baselines and of the models, with their weights.

        Of the finished model, also the metrics of what the client uses, chosen on validation data, and the sums of its
        differences to the simple baseline; the client stores all of them. Without `with_baselines`, baselines are measured
        only where the client uses one.
        """
        config, participant, models = self.config, self.participant, self.models
        split, final, learner, request = self.split, self.final, participant.learner, participant.request
        choice, uses = next(iter(models)), dict[str, bool]()
        if final and _chooses(config):
            choice = choose(config, learner, models, request.statics, "validation")
        metrics: Metrics = {}
        weights: Metrics = {}
        baselines = getattr(learner, "baselines", None)  # `isinstance` of a protocol takes 15 µs
        if baselines and (with_baselines or choice not in models):
            metrics, weights = _checked(learner.task, baselines(split, request.statics))
        for prefix, model in models.items():
            means, counts = _checked(learner.task, learner.evaluate(model, request.statics, split))
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


def _checked(task: str, measured: Any) -> tuple[Metrics, Metrics]:
    """Return the means and numbers of records that a learner has measured.

    Raises:
        PackageError: The learner of a package returned something else.
    """
    with naming_packages(TASKS.packages(task)):
        means, counts = ({name: float(value) for name, value in part.items()} for part in measured)
        if lacks := means.keys() ^ counts.keys():
            raise ValueError(f"`evaluate` or `baselines` lacks the mean or the number of records of '{min(lacks)}'")
    return means, counts


def prepare_measurement(config: RunConfig, participant: Participant, split: str, *, final: bool) -> Measurement:
    """Return a client's measurement; its model is adapted if the method does, and a finished one stored."""
    stored = participant.store.load(participant.run)
    state = return_to_round(participant.store, participant.run, stored, participant.request.round)
    if participant.learner.examples and config.capabilities.own_model == "adapted":
        state = build_trainer(config.method_options).personalize(participant) or state
    if final and state is not stored:
        participant.store.save(participant.run, state)
    models = models_of_client(config.method_options, participant.request.model, state)
    models |= {SUMS_ALONE.prefix: {}} if config.first and final else {}
    return Measurement(config, participant, models, split, final)


def _chooses(config: RunConfig) -> bool:
    """Return True if a client chooses on validation data what it uses."""
    return bool(config.task_options.validation_share) and TASKS[config.task].comparison is not None


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
