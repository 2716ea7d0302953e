"""Waiting for a reply's content, which reaches the SuperLink some milliseconds after the reply is announced.

Flower's HttpGrid then sleeps a full second before it looks again, and its public interface offers no way to say
otherwise; a server that polls in milliseconds meets this in many rounds. And where content is not what it claims to be, it
raises, and the replies of all other clients are lost with that one. So this file reaches into Flower, as only `server.grid`
does besides: it gives the retry that HttpGrid makes other parameters, and puts an error in place of what cannot be read. A
contract test pins what it relies on.
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

FIRST_RETRY, LONGEST_RETRY = 0.005, 0.2  # seconds
MALFORMED = 0  # Flower's ErrorCode for what has no other


@contextmanager
def quick_uploads(deadline: float) -> Iterator[None]:
    """Inside, announced content is looked for within milliseconds, and given up after `deadline` seconds.

    Content given up arrives as an error reply, like any other failure of a client. Content that is malformed arrives as an
    error that replies to nothing: whose it is stands in what cannot be read, so its sender counts as missing.
    """
    names = vars(http_grid)
    patient, trusting = names["pull_objects"], names["inflate_object_from_contents"]
    names["pull_objects"] = partial(
        patient, max_time=deadline, max_tries_per_object=None, initial_backoff=FIRST_RETRY, backoff_cap=LONGEST_RETRY
    )
    names["inflate_object_from_contents"] = partial(_inflated, trusting)
    try:
        yield
    finally:
        names["pull_objects"], names["inflate_object_from_contents"] = patient, trusting


def _inflated(inflate: Callable[..., Any], identity: str, contents: dict[str, bytes]) -> Message:
    try:
        message = inflate(identity, contents)
    except Exception as error:  # whatever a client has put there
        return _malformed(type(error).__name__)
    return message if isinstance(message, Message) else _malformed(f"a {type(message).__name__}, and no message")


def _malformed(why: str) -> Message:
    log.warning("a client's answer is malformed and left out: %s", why)
    nowhere = Metadata(0, "", 0, 0, "", "", 0.0, 0.0, "query")
    return make_message(nowhere, error=Error(MALFORMED, f"malformed: {why}"))
