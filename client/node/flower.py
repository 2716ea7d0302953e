"""Door to Flower's internals at a client: messages as bytes, failures as answers, contexts of runs."""

import logging
from collections import OrderedDict

from flwr.app import ConfigRecord, Context, Error, Message, Metadata, RecordDict
from flwr.app.message import make_message
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as RecordDictProto

from common.door.door_pb2 import Reply, Task
from common.errors import FedloomError, PackageError, RefusedError, WireError, public_reason
from common.registry import name_package
from common.wire.messages import FAILED, REFUSED

SUPERLINK = 1
"""Flower's number of the SuperLink."""


def pack_reply(reply: Message) -> tuple[Reply, bytes]:
    """Return the frame of a reply, without its content, and the content."""
    frame = Reply(task=reply.metadata.reply_to_message_id)
    if reply.has_error():
        frame.code, frame.reason = reply.error.code, reply.error.reason or ""
        return frame, b""
    return frame, serialize(reply.content)


def serialize(content: RecordDict) -> bytes:
    """Return a content as Flower does; it copies an array of bytes six times, this once."""
    proto = RecordDictProto()
    for name, record in content.items():
        values = dict(record) if isinstance(record, ConfigRecord) else {}
        blobs = {key: value for key, value in values.items() if isinstance(value, bytes)}
        rest = ConfigRecord({**values, **dict.fromkeys(blobs, b"")}) if blobs else record
        proto.MergeFrom(recorddict_to_proto(RecordDict({name: rest})))
        for item in proto.items[-1].config_record.items:
            if item.key in blobs:
                item.value.bytes = blobs[item.key]
    serialized: bytes = proto.SerializeToString()
    return serialized


def unpack_task(task: Task, content: bytes, node: int, sender: str) -> Message:
    """Return the message of a task to this node.

    Raises:
        WireError: The content, or the kind of the task, is malformed.
    """
    try:
        metadata = Metadata(task.run, task.id, SUPERLINK, node, "", task.group, task.created, task.ttl, task.kind)
        return make_message(metadata, recorddict_from_proto(RecordDictProto.FromString(content)))
    except Exception as error:  # servers may send any bytes
        raise WireError(f"{sender} sent malformed content ({type(error).__name__})") from error


log = logging.getLogger("fedloom.client")
refusals = logging.getLogger("fedloom.client.refusals")
"""Log of refusals without a hidden cause; the log of `fedloom join` has a line of its own for each."""


def failure_reply(message: Message, error: Exception) -> Message:
    """Return an error answer; the full error with its causes is written to the client's log only."""
    return Message(failure(message.metadata.message_type, error), reply_to=message)


def failure(kind: str, error: BaseException) -> Error:
    """Return the error in an answer to a kind of request; the log alone has all of it."""
    error = name_package(error)
    details = f"{error}: {error.__cause__}" if error.__cause__ and not isinstance(error, PackageError) else str(error)
    refused = isinstance(error, RefusedError)
    sink = refusals if refused and not error.__cause__ else log
    sink.error("%s: %s", kind, details, exc_info=not isinstance(error, FedloomError))
    return Error(REFUSED if refused else FAILED, public_reason(error))


Config = dict[str, bool | float | int | str]
RUNS_REMEMBERED = 16


class RunContexts:
    """State of the last `RUNS_REMEMBERED` runs."""

    def __init__(self, node_config: Config) -> None:
        self._node_config = node_config
        self._runs: OrderedDict[int, RecordDict] = OrderedDict()

    def build(self, node_id: int, run_id: int) -> Context:
        """Return the Context of a run; it has no configuration, since requests of fedloom bring theirs."""
        state = self._runs.setdefault(run_id, RecordDict())
        while len(self._runs) > RUNS_REMEMBERED:
            self._runs.popitem(last=False)
        return Context(run_id=run_id, node_id=node_id, node_config=dict(self._node_config), state=state, run_config={})

    def store(self, context: Context) -> None:
        """Store the state that the app has left in a Context."""
        self._runs[context.run_id] = context.state
