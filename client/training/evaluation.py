"""Evaluation of a run's model on a client's held-out data; nothing is sent from here."""

from client.inference.choose_model import models_of_client
from client.tasks.learner import HasBaselines, Learner
from client.trainers.registry import build_trainer
from client.training.participant import Participant
from common.methods.spec import MethodOptions
from common.wire.messages import Metrics


def measured(
    algorithm: MethodOptions, learner: Learner, member: Participant, split: str, *, final: bool
) -> tuple[Metrics, Metrics]:
    """Return metrics of the baselines and of every model the client has, with their weights.

    Args:
        algorithm: Options of the method.
        learner: The client's data.
        member: The client; its request holds the shared model and the summed statistics, its steps are those of `ADAPT`.
        split: `validation` or `test`.
        final: True if this is the finished model; a model adapted from it is then stored for recommendations.
    """
    request, memory = member.request, member.store.load(member.run)
    adapted = build_trainer(algorithm).personalize(member) if learner.examples else None
    if adapted is not None:
        memory = adapted
        if final:
            member.store.save(member.run, memory)
    metrics: Metrics = {}
    weights: Metrics = {}
    if isinstance(learner, HasBaselines):
        metrics, weights = map(dict, learner.baselines(split, request.statics))
    for prefix, model in models_of_client(algorithm, request.model, memory).items():
        values, counts = learner.evaluate(model, request.statics, split)
        metrics |= {f"{prefix}{name}": value for name, value in values.items()}
        weights |= {f"{prefix}{name}": count for name, count in counts.items()}
    return metrics, weights
