"""The Flower ClientApp: decode -> session -> encode. The same object runs in every kind of client."""

import functools
import logging
import math
from collections.abc import Callable

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

from client.data.read import read_partition
from client.data.sources import fingerprint, fingerprint_of_all, is_demo, located
from client.policy import Policy, read_policy
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.locate import open_ledger
from client.privacy.release import Releaser
from client.session import Session
from client.settings import ClientSettings
from client.state import DiskStore
from client.tasks.learner import Learner
from client.tasks.registry import CLIENT_TASKS, build_learner
from common.config.run import RunConfig
from common.errors import FedloomError, WireError, public_reason
from common.privacy.accounts import Account
from common.privacy.claims import UNBOUNDED
from common.privacy.options import Unit
from common.tasks.vocabulary import Vocabulary
from common.wire.codec import decode, encode
from common.wire.messages import (
    ASSIGN,
    COUNTS,
    ENROL,
    EVALUATE,
    TRAIN,
    AssignRequest,
    CountsRequest,
    EnrolRequest,
    EvaluateRequest,
    Payload,
    TrainRequest,
)

log = logging.getLogger("fedloom.client")
app = ClientApp()

FAILED = 1000
"""Flower error code of a client that could not, or would not, do what was asked; the reason says which."""


@app.query(ENROL.partition(".")[2])
@app.query(COUNTS.partition(".")[2])
@app.query(ASSIGN.partition(".")[2])
@app.train()
@app.evaluate()
def handle(message: Message, context: Context) -> Message:
    """Answer one message as the client whose node it arrived at."""
    try:
        session = open_session(ClientSettings.of(context))
    except Exception as error:
        return failure(message, error)
    return respond(session, message)


def respond(session: Session, message: Message) -> Message:
    """What a client answers; a failure is an answer too."""
    return answered(session, message, lambda: request_in(message))


def answered(session: Session, message: Message, request: Callable[[], Payload]) -> Message:
    """`respond` to a message whose request may have been read before."""
    try:
        return Message(encode(_work(session, request())), reply_to=message)
    except Exception as error:
        return failure(message, error)


def failure(message: Message, error: Exception) -> Message:
    """The answer of a client that could not, or would not; the whole story, causes included, goes to its own log only."""
    story = f"{error}: {error.__cause__}" if error.__cause__ else str(error)
    log.error("%s: %s", message.metadata.message_type, story, exc_info=not isinstance(error, FedloomError))
    return Message(Error(FAILED, public_reason(error)), reply_to=message)


def request_in(message: Message) -> Payload:
    """What a message asks.

    Raises:
        WireError: It asks for nothing that clients do, or is garbled.
    """
    kind = message.metadata.message_type
    if kind not in _REQUESTS:
        raise WireError(f"this client knows no message '{kind}'")
    return decode(_REQUESTS[kind], message.content)


_REQUESTS: dict[str, type[Payload]] = {
    ENROL: EnrolRequest,
    COUNTS: CountsRequest,
    ASSIGN: AssignRequest,
    TRAIN: TrainRequest,
    EVALUATE: EvaluateRequest,
}


def _work(session: Session, request: Payload) -> Payload:
    match request:
        case EnrolRequest():
            return session.enrol(request)
        case CountsRequest():
            return session.counts(request)
        case AssignRequest():
            return session.assign(request)
        case TrainRequest():
            return session.train(request)
        case EvaluateRequest():
            return session.evaluate(request)
        case _:
            raise WireError(f"{type(request).__name__} is an answer, and no request")


@functools.cache
def open_session(settings: ClientSettings) -> Session:
    """The client with these settings, kept in memory between messages."""
    data = fingerprint(settings.data, settings.part, settings.data_seed)
    store = DiskStore(settings.state_dir / settings.name / data[:16])
    store.describe({"data": located(settings.data), "part": list(settings.part), "seed": settings.data_seed})
    learner, policy = functools.partial(_learner, settings), read_policy(settings.policy, made=is_demo(settings.data))
    whole = data if is_demo(settings.data) else fingerprint_of_all(settings.data)
    guard = Releaser(policy, functools.partial(_ledger, settings, policy, whole), part=_named(settings.part))
    return Session(settings.name, learner, store, guard)


def _named(part: tuple[int, int]) -> str:
    """What tells the parts of one data set apart in the ledger that they share."""
    return f"{part[0]}/{part[1]}" if part[1] > 1 else ""


def _ledger(settings: ClientSettings, policy: Policy, data: str, unit: Unit, account: Account) -> Ledger:
    """The ledger of the client's data: what it may ever spend is its owner's choice, not the run's."""
    return open_ledger(
        settings.data,
        settings.state_dir,
        data,
        unit,
        account,
        min(policy.max_epsilon, UNBOUNDED),
        policy.delta,
        folder=settings.ledgers,
        alone=math.isfinite(policy.max_epsilon),
    )


def _learner(settings: ClientSettings, config: RunConfig, vocabulary: Vocabulary) -> Learner:
    """The client's data, read and made ready for a run.

    Raises:
        DataError: The data are missing, malformed or speak of what the vocabulary lacks.
    """
    part = read_partition(config.task, settings.data, settings.part, settings.data_seed, vocabulary, settings.dialect)
    for note in (*part.notes, *CLIENT_TASKS[config.task].warnings(config.task_options, part)):
        log.warning("%s: %s", settings.data, note)
    return build_learner(config, part)
