"""Error answers of a node to messages it cannot or will not answer."""

import logging

from flwr.app import Error, Message

from common.errors import FedloomError, RefusedError, public_reason
from common.wire.messages import FAILED, REFUSED

log = logging.getLogger("fedloom.client")
refusals = logging.getLogger("fedloom.client.refusals")
"""Log of refusals without a hidden cause; the log of `fedloom join` has a line of its own for each."""


def failure_reply(message: Message, error: Exception) -> Message:
    """Return an error answer; the full error with its causes is written to the client's log only."""
    return Message(failure(message.metadata.message_type, error), reply_to=message)


def failure(kind: str, error: Exception) -> Error:
    """Return the error in an answer to a kind of request; the log alone has all of it."""
    details = f"{error}: {error.__cause__}" if error.__cause__ else str(error)
    refused = isinstance(error, RefusedError)
    sink = refusals if refused and not error.__cause__ else log
    sink.error("%s: %s", kind, details, exc_info=not isinstance(error, FedloomError))
    return Error(REFUSED if refused else FAILED, public_reason(error))
