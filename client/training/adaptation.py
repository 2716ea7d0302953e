"""Adaptation of a finished run's model to a late-joining client; nothing is sent to the server."""

from collections.abc import Sequence

from client.inference.choose_model import has_own_parameters, split_statics
from client.session import Session
from common.arrays import Arrays, add_prefix
from common.config.flatten import to_json
from common.config.run import RunConfig
from common.models import build_model, parameters
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import AssignRequest, EnrolRequest, EvaluateRequest, Metrics, TrainRequest


def adapt(session: Session, config: RunConfig, vocabulary: Vocabulary, trained: Arrays) -> Metrics:
    """Train the private parameters of a run's model, with the shared ones fixed, and store the model.

    Under methods without such parameters, as FedAvg, the finished model is stored as it is. Under Per-FedAvg it takes the steps
    of that method. A client without training data stores the first model.

    Args:
        session: The client.
        config: The run, without noise, since nothing is sent.
        vocabulary: Vocabulary of the run.
        trained: Finished model, with the summed statistics from which it started.

    Returns:
        Metrics on the client's held-out data: of its model, of the baselines and, with a prefix, of the shared model.

    Raises:
        RefusedError: The owner's policy forbids such a run, or the data do not fit.
    """
    spec = TASKS[config.task]
    models, statics = split_statics(trained, parameters(build_model(spec, config.task_run(spec, vocabulary))))
    enrolled = session.enrol(EnrolRequest(config.run_id, to_json(config), vocabulary.to_json()))
    enrolment, trains = enrolled.enrolment, enrolled.examples > 0
    shared = _closest(session, enrolment, models, statics) if trains and len(models) > 1 else models[0]
    for number in range(1, config.rounds + 1 if trains and _trains_own(config, shared) else 1):
        session.train(TrainRequest(number, enrolment, shared, statics=statics))
    return session.evaluate(EvaluateRequest(config.rounds, enrolment, shared, "test", statics, final=True)).metrics


def _closest(session: Session, enrolment: str, models: Sequence[Arrays], statics: Arrays) -> Arrays:
    """Return the model of the cluster with the lowest training loss on the client's data."""
    sent = {name: a for j, model in enumerate(models) for name, a in add_prefix(str(j), model).items()}
    losses = session.assign(AssignRequest(1, enrolment, sent, "loss", statics=statics)).losses
    return models[int(min(losses, key=lambda key: losses[key]))]


def _trains_own(config: RunConfig, model: Arrays) -> bool:
    """Return True if clients train a private part or model; one adapted at each evaluation is none."""
    return config.capabilities.own_model != "adapted" and has_own_parameters(config, model)
