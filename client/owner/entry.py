"""Journal entries of requests and replies, from messages."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

from flwr.app import Message

from client.journal import Asked, RequestEntry
from common.config.flatten import read_names
from common.config.secure_sums import count_cost
from common.text import printable
from common.wire.codec import Outline, outline
from common.wire.messages import EnrolRequest

if TYPE_CHECKING:
    from client.enrolment import EnrolledRun

MAX_NAME_LENGTH = 200
"""Maximum number of characters of a server's name in an entry."""

CONSTANTS = {"loss": 0.0, "examples": 1.0}
"""Values of fields that carry no data in replies of a run with noise."""


def describe_request(message: Message, request: Outline, client: str, time: str) -> RequestEntry:
    """Return the entry of a request of any server; texts of the server are cut and made printable."""
    kind = message.metadata.message_type.rpartition(".")[2]
    asked = cast(Asked, kind) if kind in get_args(Asked) else ""
    task, method = _names(request)
    number = request.values.get("round", 0)
    return RequestEntry(
        id=printable(message.metadata.message_id, 64),
        time=time,
        client=client,
        run=printable(enrolment_of(request).partition(":")[0] or str(request.values.get("run", "")), MAX_NAME_LENGTH),
        round=number if isinstance(number, int) else 0,
        asked=asked,
        method=method,
        task=task,
        received_bytes=request.size,
    )


def describe_reply(entry: RequestEntry, reply: Message, run: "EnrolledRun | None", seconds: float) -> RequestEntry:
    """Return the entry with what the reply holds.

    Args:
        entry: Entry of the request.
        reply: Reply that is about to be sent.
        run: Enrolled run; None if the request has none.
        seconds: Time from the request to the reply.
    """
    entry = replace(entry, seconds=round(seconds, 3))
    if run:
        config = run.config
        entry = replace(entry, run=run.run, task=config.task, method=config.method, rounds=config.rounds)
        entry = replace(entry, records=run.learner.examples)
    if reply.has_error():
        return replace(entry, refused=reply.error.reason or "no reason")
    sent = outline(reply.content)
    noised = run is not None and _is_noised(entry.asked, run)
    numbers = _numbers(sent.values, has_noise=run is not None and run.config.privacy.unit != "none")
    return replace(entry, sent_bytes=sent.size, tensors=sent.shapes, clear=numbers, noised=noised)


def enrolment_of(request: Outline) -> str:
    """Return the enrolment that a request names, or starts; empty if there is none."""
    if request.payload == EnrolRequest.__name__:
        from client.enrolment import fingerprint

        run, config, catalogue = (str(request.values.get(field, "")) for field in ("run", "config", "catalogue"))
        helpers = request.values.get("helpers")
        cards = [str(card) for card in helpers] if isinstance(helpers, list) else []
        return fingerprint(EnrolRequest(run, config, catalogue, cards))
    return str(request.values.get("enrolment", ""))


def _names(request: Outline) -> tuple[str, str]:
    """Return task and method of an enrolment; empty texts for other requests."""
    try:
        task, method, _ = read_names(str(request.values.get("config", "")))
    except Exception:  # the config of a server may be any text
        return "", ""
    return printable(task, MAX_NAME_LENGTH), printable(method, MAX_NAME_LENGTH)


def _is_noised(asked: Asked, run: "EnrolledRun") -> bool:
    if asked == "counts":
        return run.config.task_options.count_privacy.unit != "none" or count_cost(run.config) > 0
    return asked in ("train", "assign") and run.config.privacy.unit != "none"


def _numbers(values: dict[str, Any], has_noise: bool) -> dict[str, float]:
    """Return the numbers of a reply that no noise covers."""
    numbers = {k: float(v) for k, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    hidden = CONSTANTS.items() if has_noise else ()
    return {
        k: v for k, v in numbers.items() if k not in ("round", "steps") and (k, v) not in hidden and not math.isnan(v)
    }
