"""A newcomer takes the model of a finished federation and makes its own part of it; on the client, nothing leaves it."""

from collections.abc import Sequence

from client.session import Session
from common.arrays import Arrays, add_prefix, group
from common.config.flatten import to_json
from common.config.run import RunConfig
from common.models import build_model, parameters
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import AssignRequest, EnrolRequest, EvaluateRequest, Metrics, TrainRequest


def adapt(session: Session, config: RunConfig, names: Vocabulary, trained: Arrays) -> Metrics:
    """Train what a client of that run keeps to itself, with what it shares as it was left, and keep the model here.

    Where clients keep nothing to themselves, as under FedAvg, the finished model serves as it is; under Per-FedAvg it takes the
    few steps that it is made for. Who has nothing to train on takes the first model as it is.

    Args:
        session: The newcomer.
        config: The run, without noise: what does not leave needs none.
        names: Its vocabulary.
        trained: Its finished model, with the sums it started from where there are any.

    Returns:
        Metrics on the newcomer's own held-out data: of its own model and, with a prefix, of the shared one; lines beside them.

    Raises:
        RefusedError: The owner's policy forbids such a run, or its data do not fit.
    """
    spec = TASKS[config.task]
    own = parameters(build_model(spec, config.task_run(spec, names)))
    models = [{name: one[name] for name in own} for one in models_in(trained)]
    statics = {name: a for name, a in trained.items() if name not in own and not _of_cluster(name)}
    enrolled = session.enrol(EnrolRequest(config.run_id, to_json(config), names.to_json()))
    enrolment, trains = enrolled.enrolment, enrolled.examples > 0
    shared = _closest(session, enrolment, models, statics) if trains and len(models) > 1 else models[0]
    for number in range(1, config.rounds + 1 if trains and _keeps(config, shared) else 1):
        session.train(TrainRequest(number, enrolment, shared, statics=statics))
    return session.evaluate(EvaluateRequest(config.rounds, enrolment, shared, "test", statics, final=True)).metrics


def models_in(trained: Arrays) -> list[Arrays]:
    """The models of a finished run: of each of its clusters, or the one that it has."""
    clusters = sorted({name.partition("/")[0] for name in trained if _of_cluster(name)}, key=int)
    return [group(key, trained) for key in clusters] or [trained]


def _of_cluster(name: str) -> bool:
    return name.partition("/")[0].isdigit()


def _closest(session: Session, enrolment: str, models: Sequence[Arrays], statics: Arrays) -> Arrays:
    """The model of the cluster that suits the newcomer's own data best."""
    told = {name: a for j, model in enumerate(models) for name, a in add_prefix(str(j), model).items()}
    losses = session.assign(AssignRequest(1, enrolment, told, "loss", statics=statics)).losses
    return models[int(min(losses, key=lambda key: losses[key]))]


def _keeps(config: RunConfig, model: Arrays) -> bool:
    """Whether clients of such a run have a model or parameters of their own."""
    capabilities = config.capabilities
    own_model = capabilities.own_model in ("trained", "beside")
    return own_model or bool(TASKS[config.task].private(model, capabilities))
