"""Retrieval of reply content, which reaches the SuperLink milliseconds after the reply is announced.

Flower's HttpGrid then sleeps a full second before its next attempt, without a public option to change it. A server that
polls in milliseconds meets this in many rounds. HttpGrid also raises on content of a wrong type, which discards the
replies of all other clients. This module therefore changes internals of Flower, as only `server.grid` does otherwise.
It sets other parameters of HttpGrid's retry and replaces unreadable content by an error. A contract test pins the
internals it uses.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from flwr.app import Error, Message, Metadata
from flwr.app.message import make_message
from flwr.superlink.grid import http_grid

log = logging.getLogger("fedloom.server")

FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.005, 0.2  # seconds
MALFORMED_CODE = 0  # Flower's ErrorCode for what has no other


@contextmanager
def quick_uploads(deadline: float) -> Iterator[None]:
    """Retry announced content within milliseconds inside the block, and give up after `deadline` seconds.

    Missing content becomes an error reply, like any other failure of a client. Malformed content becomes an error without a
    recipient, since the unreadable part names the sender; the client then counts as missing.
    """
    names = vars(http_grid)
    patient, trusting = names["pull_objects"], names["inflate_object_from_contents"]
    names["pull_objects"] = partial(
        patient,
        max_time=deadline,
        max_tries_per_object=None,
        initial_backoff=FIRST_RETRY_SECONDS,
        backoff_cap=MAX_RETRY_SECONDS,
    )
    names["inflate_object_from_contents"] = partial(_inflate, trusting)
    try:
        yield
    finally:
        names["pull_objects"], names["inflate_object_from_contents"] = patient, trusting


def _inflate(inflate: Callable[..., Any], identity: str, contents: dict[str, bytes]) -> Message:
    try:
        message = inflate(identity, contents)
    except Exception as error:  # clients may send any bytes
        return _malformed_reply(type(error).__name__)
    return (
        message
        if isinstance(message, Message)
        else _malformed_reply(f"a {type(message).__name__} instead of a message")
    )


def _malformed_reply(reason: str) -> Message:
    log.warning("a malformed reply is left out: %s", reason)
    no_recipient = Metadata(0, "", 0, 0, "", "", 0.0, 0.0, "query")
    return make_message(no_recipient, error=Error(MALFORMED_CODE, f"malformed: {reason}"))
