"""Adaptation of a finished run's model to a late-joining client; nothing is sent to the server."""

from collections.abc import Sequence

from client.session import Session
from common.arrays import Arrays, add_prefix, group
from common.config.flatten import to_json
from common.config.run import RunConfig
from common.models import build_model, parameters
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import AssignRequest, EnrolRequest, EvaluateRequest, Metrics, TrainRequest


def adapt(session: Session, config: RunConfig, vocabulary: Vocabulary, trained: Arrays) -> Metrics:
    """Train the private part of a finished run's model on a late-joining client, and store it there.

    Without a private part, as in FedAvg, the finished model is evaluated unchanged; Per-FedAvg adapts it in its few steps. A
    client without training data uses the first model unchanged.

    Args:
        session: Session of the late-joining client.
        config: Configuration of the run, without noise: nothing is sent.
        vocabulary: Vocabulary of the run.
        trained: Finished model, with the summed counts if the run has any.

    Returns:
        Metrics on the client's held-out data: of the adapted model, with a prefix of the shared model, and of baselines.

    Raises:
        RefusedError: The policy does not allow the run, or the data do not match its vocabulary.
    """
    spec = TASKS[config.task]
    template = parameters(build_model(spec, config.task_run(spec, vocabulary)))
    models = [{name: model[name] for name in template} for model in split_models(trained)]
    statics = {name: a for name, a in trained.items() if name not in template and not _is_of_cluster(name)}
    enrolled = session.enrol(EnrolRequest(config.run_id, to_json(config), vocabulary.to_json()))
    enrolment, trains = enrolled.enrolment, enrolled.examples > 0
    shared = _select_closest(session, enrolment, models, statics) if trains and len(models) > 1 else models[0]
    for number in range(1, config.rounds + 1 if trains and _keeps_parameters(config, shared) else 1):
        session.train(TrainRequest(number, enrolment, shared, statics=statics))
    return session.evaluate(EvaluateRequest(config.rounds, enrolment, shared, "test", statics, final=True)).metrics


def split_models(trained: Arrays) -> list[Arrays]:
    """Return the models of a finished run: one per cluster, or the single one."""
    clusters = sorted({name.partition("/")[0] for name in trained if _is_of_cluster(name)}, key=int)
    return [group(key, trained) for key in clusters] or [trained]


def _is_of_cluster(name: str) -> bool:
    return name.partition("/")[0].isdigit()


def _select_closest(session: Session, enrolment: str, models: Sequence[Arrays], statics: Arrays) -> Arrays:
    """Return the cluster model with the lowest loss on the client's data."""
    merged = {name: a for j, model in enumerate(models) for name, a in add_prefix(str(j), model).items()}
    losses = session.assign(AssignRequest(1, enrolment, merged, "loss", statics=statics)).losses
    return models[int(min(losses, key=lambda key: losses[key]))]


def _keeps_parameters(config: RunConfig, model: Arrays) -> bool:
    """Return True if clients of the run have a personalized model or private layers."""
    capabilities = config.capabilities
    has_model = capabilities.own_model in ("trained", "beside")
    return has_model or bool(TASKS[config.task].private(model, capabilities))
