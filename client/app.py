"""Flower ClientApp: decode -> session -> encode. Every kind of client runs the same object."""

import functools
import math
from collections.abc import Callable

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from client.checks import check_client, open_consent, open_node_key
from client.data.child_reader import read_partition_apart
from client.data.read import read_partition, read_under
from client.hub.state import FOLDER, HostedStore, open_blocks
from client.node.flower import failure_reply, log
from client.privacy.ledger.locate import open_ledger
from client.privacy.release import Releaser
from client.session import Session
from client.settings import ClientSettings
from client.state import DiskStore
from client.tasks.learner import Learner
from client.tasks.registry import CLIENT_TASKS, build_learner
from common.config.run import RunConfig
from common.errors import WireError
from common.privacy.claims import UNBOUNDED
from common.tasks.vocabulary import Vocabulary
from common.wire.codec import decode, encode
from common.wire.messages import (
    ASSIGN,
    ENROL,
    EVALUATE,
    HELPER,
    MEMBERS,
    NAMES,
    TRAIN,
    AssignRequest,
    EnrolRequest,
    EvaluateRequest,
    HelperReply,
    HelperRequest,
    MembersRequest,
    NamesRequest,
    Payload,
    TrainRequest,
)

app = ClientApp()


@app.query(ENROL.partition(".")[2])
@app.query(NAMES.partition(".")[2])
@app.query(MEMBERS.partition(".")[2])
@app.query(HELPER.partition(".")[2])
@app.query(ASSIGN.partition(".")[2])
@app.train()
@app.evaluate()
def handle(message: Message, context: Context) -> Message:
    """Answer one message as the client of the node that received it."""
    try:
        session = open_session(ClientSettings.from_context(context))
    except Exception as error:
        return failure_reply(message, error)
    return respond(session, message)


def respond(session: Session, message: Message) -> Message:
    """Return a client's answer; a failure is an answer too."""
    return answer(session, message, lambda: decode_request(message))


Write = Callable[[Payload], RecordDict]


def answer(session: Session, message: Message, request: Callable[[], Payload], write: Write = encode) -> Message:
    """Return the answer to a message whose request may be decoded already; `write` makes its content."""
    try:
        return Message(write(dispatch(session, request())), reply_to=message)
    except Exception as error:
        return failure_reply(message, error)


def decode_request(message: Message) -> Payload:
    """Return the request in a message.

    Raises:
        WireError: The message type is unsupported, or the content cannot be decoded.
    """
    kind = message.metadata.message_type
    if kind not in _REQUESTS:
        raise WireError(f"unsupported message type '{kind}'")
    return decode(_REQUESTS[kind], message.content)


_REQUESTS: dict[str, type[Payload]] = {
    ENROL: EnrolRequest,
    NAMES: NamesRequest,
    MEMBERS: MembersRequest,
    ASSIGN: AssignRequest,
    TRAIN: TrainRequest,
    EVALUATE: EvaluateRequest,
    HELPER: HelperRequest,
}


def dispatch(session: Session, request: Payload) -> Payload:
    """Return a client's reply to a request.

    Raises:
        FedloomError: The client fails, or refuses.
        WireError: The payload is no request.
    """
    match request:
        case EnrolRequest():
            return session.enrol(request)
        case NamesRequest():
            return session.names(request)
        case MembersRequest():
            return session.members(request)
        case AssignRequest():
            return session.assign(request)
        case TrainRequest():
            return session.train(request)
        case EvaluateRequest():
            return session.evaluate(request)
        case HelperRequest():
            return HelperReply(card="")
        case _:
            raise WireError(f"{type(request).__name__} is an answer, not a request")


@functools.cache
def open_session(settings: ClientSettings) -> Session:
    """Return the client with these settings; it stays in memory between messages."""
    checked = check_client(settings)
    blocks = open_blocks(settings.state_dir / FOLDER / settings.hub) if settings.hub else None
    store = HostedStore(checked.root, blocks) if blocks else DiskStore(checked.root)
    policy, (k, parts_of_data) = checked.policy, settings.part
    ledger = functools.partial(
        open_ledger,
        settings.data,
        settings.state_dir,
        checked.data,
        epsilon=min(policy.max_epsilon, UNBOUNDED),  # the owner's choice, not the run's
        delta=policy.delta,
        folder=settings.ledgers,
        alone=math.isfinite(policy.max_epsilon),
    )
    consent = open_consent(settings)
    releaser = Releaser(policy, ledger, part=f"{k}/{parts_of_data}" if parts_of_data > 1 else "", consent=consent)
    build, names = functools.partial(_build_learner, settings), functools.partial(_read_names, settings)
    key = functools.partial(open_node_key, settings.key, checked.root)
    return Session(settings.public_name, build, store, releaser, checked.first_contacts, names, key, settings.device)


def _read_names(settings: ClientSettings, config: RunConfig) -> Vocabulary:
    """Return the names in the client's data.

    Raises:
        DataError: The data are missing or malformed.
    """
    read = read_partition if settings.hub else read_partition_apart
    part = read(config.task, settings.data, settings.part, settings.data_seed, None, settings.dialect)
    is_whole = settings.part[1] == 1  # else the names are those of all partitions
    names: Vocabulary = (part if is_whole else read_under(config.task, part, None)).vocabulary
    return names


def _build_learner(settings: ClientSettings, config: RunConfig, vocabulary: Vocabulary) -> Learner:
    """Read the client's data and prepare them for a run.

    Raises:
        DataError: The data are missing or malformed, or contain names outside the vocabulary.
    """
    read = read_partition if settings.hub else read_partition_apart  # a hub reads the data of many clients
    part = read(config.task, settings.data, settings.part, settings.data_seed, vocabulary, settings.dialect)
    for note in (*part.notes, *CLIENT_TASKS[config.task].warnings(config.task_options, part)):
        log.warning("%s: %s", settings.data, note)
    return build_learner(config, part)
