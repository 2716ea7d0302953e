"""A newcomer takes the model of a finished federation and makes its own part of it; on the client, nothing leaves it."""

from client.session import Session
from client.trainers import build_trainer
from common.arrays import Arrays
from common.config import RunConfig
from common.flat import to_json
from common.models import build_model, parameters
from common.models.heads import head_of, own_of
from common.tasks.vocabularies import Names
from common.wire.messages import EnrolRequest, EvaluateRequest, Metrics, TrainRequest


def adapt(session: Session, config: RunConfig, names: Names, trained: Arrays) -> Metrics:
    """Train what a client of that run keeps to itself, with what it shares as it was left, and keep the model here.

    Where clients keep nothing to themselves, as under FedAvg, the finished model serves as it is; under Per-FedAvg it takes the
    few steps that it is made for.

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
    shared = {name: trained[name] for name in parameters(build_model(config, names))}
    statics = {name: a for name, a in trained.items() if name not in shared}
    enrolment = session.enrol(EnrolRequest(config.run_id, to_json(config), names.to_json())).enrolment
    for number in range(1, config.rounds + 1 if _keeps(config, shared) else 1):
        session.train(TrainRequest(number, enrolment, shared, statics=statics))
    return session.evaluate(EvaluateRequest(config.rounds, enrolment, shared, "test", statics, final=True)).metrics


def _keeps(config: RunConfig, model: Arrays) -> bool:
    """Whether clients of such a run have a model or parameters of their own."""
    trainer, own = build_trainer(config.chosen), own_of(config.task, model)
    return trainer.own in ("trained", "beside") or bool(own or trainer.private(set(model), head_of(config.task, model)))
