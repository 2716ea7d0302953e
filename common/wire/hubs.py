"""Messages of a hub, a node that hosts several clients, and the sum of its clients' replies.

A request to a hub is the request that a single client gets, with the names of the clients that it is for. The reply holds
each client's own reply, entry by entry, or the error that the client has in its place. Both are one record, so a hub takes
as many calls of Flower as a single client. Where the server asks for it, a hub adds up the arrays of its clients' training
replies. Their entries then lack arrays, and one blob has the sum.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Error, RecordDict
from safetensors.numpy import load, save

from common.arrays import add_prefix, group
from common.contribution import GRADIENT, UPDATE, Contribution, Member, rows_of_lengths
from common.errors import WireError
from common.text import printable
from common.wire.codec import ARRAYS, PAYLOAD, RECORD, VERSION
from common.wire.messages import FAILED, REFUSED, SCHEMA

MAX_CLIENTS, MAX_NAME = 100_000, 200
"""Largest number of clients in a message, and of characters in a name."""

_REPLY, _CLIENTS, _CODES, _REASONS = "HubReply", "hub.clients", "hub.codes", "hub.reasons"
_ANSWER, _SUMS, _SUMMED, _BLOB = "hub.answer", "sums", "hub.summed", "hub.sums"
_ANSWERED = 0

Answer = RecordDict | Error
"""Content of one client's reply, or its error."""


@dataclass(frozen=True)
class SumBlob:
    """Sum in the reply of a hub, not decoded.

    Args:
        clients: Names of the clients in the sum, in the order of their numbers in the blob.
        content: The blob.
    """

    clients: tuple[str, ...]
    content: bytes


def address(request: RecordDict, clients: Sequence[str], *, sums: bool = False) -> RecordDict:
    """Return a request for these clients of a hub; `sums` asks for the sum of their replies."""
    answer = {_ANSWER: _SUMS} if sums else {}
    return RecordDict({RECORD: ConfigRecord({**_config(request), _CLIENTS: list(clients), **answer})})


def asks_for_sums(request: RecordDict) -> bool:
    """Return True if the reply of a hub may hold a sum in place of its clients' arrays."""
    return _config(request).get(_ANSWER) == _SUMS


def addressees(request: RecordDict) -> list[str]:
    """Return the clients of a hub that a request is for; empty for all of them.

    Raises:
        WireError: The names are malformed or repeated.
    """
    config = _config(request)
    return _names(config) if _CLIENTS in config else []


def join_answers(answers: Mapping[str, Answer], total: SumBlob | None = None) -> RecordDict:
    """Return the reply of a hub, from its clients' answers by name and their sum."""
    errors = [answer if isinstance(answer, Error) else None for answer in answers.values()]
    config: dict[str, Any] = {
        VERSION: SCHEMA,
        PAYLOAD: _REPLY,
        _CLIENTS: list(answers),
        _CODES: [error.code if error else _ANSWERED for error in errors],
        _REASONS: [error.reason or "" if error else "" for error in errors],
    }
    for k, answer in enumerate(answers.values()):
        if isinstance(answer, RecordDict):
            config |= {f"{k}/{key}": value for key, value in _config(answer).items()}
    if total:
        config |= {_SUMMED: list(total.clients), _BLOB: total.content}
    return RecordDict({RECORD: ConfigRecord(config)})


def is_from_hub(reply: RecordDict) -> bool:
    """Return True if a reply claims to be that of a hub."""
    config = reply.get(RECORD)
    return isinstance(config, ConfigRecord) and config.get(PAYLOAD) == _REPLY


def split_answers(reply: RecordDict) -> dict[str, Answer]:
    """Return the clients' answers in the reply of a hub, by name; inverse of `join_answers`.

    Raises:
        WireError: The reply is not that of a hub, or is malformed; the answers themselves are not decoded.
    """
    config = _config(reply)
    if not is_from_hub(reply) or config.get(VERSION) != SCHEMA:
        raise WireError(f"expected {_REPLY} of schema version {SCHEMA}")
    names = _names(config)
    codes, reasons = _column(config, _CODES, int, len(names)), _column(config, _REASONS, str, len(names))
    entries: dict[str, dict[str, Any]] = {str(k): {} for k, code in enumerate(codes) if code == _ANSWERED}
    for key, value in config.items():
        number, slash, entry = key.partition("/")
        if slash and number not in entries:
            raise WireError(f"{_REPLY}: entry '{printable(key, 40)}' belongs to no client with an answer")
        if slash:
            entries[number][entry] = value
    return {
        name: _answer(code, reason, entries.get(str(k), {}))
        for k, (name, code, reason) in enumerate(zip(names, codes, reasons, strict=True))
    }


def sum_of(reply: RecordDict) -> SumBlob | None:
    """Return the sum in the reply of a hub; None if it has none.

    Raises:
        WireError: It is malformed, or of clients that the reply does not name.
    """
    config = _config(reply)
    if _SUMMED not in config and _BLOB not in config:
        return None
    names, blob = _names(config, _SUMMED), config.get(_BLOB)
    if not isinstance(blob, bytes):
        raise WireError(f"{_REPLY}: the sum has names and no arrays")
    if strangers := set(names) - set(_names(config)):
        raise WireError(f"{_REPLY}: the sum has '{printable(min(strangers), 40)}', which the reply does not name")
    return SumBlob(tuple(names), blob)


def describe_sum(answer: RecordDict, total: SumBlob) -> RecordDict:
    """Return an answer in a sum with the names and shapes of the sum's arrays in place of its own."""
    header = 8 + int.from_bytes(total.content[:8], "little")
    return RecordDict({RECORD: ConfigRecord({**_config(answer), ARRAYS: total.content[:header]})})


def _answer(code: int, reason: str, entries: dict[str, Any]) -> Answer:
    if code == _ANSWERED:
        return RecordDict({RECORD: ConfigRecord(entries)})
    if code not in (FAILED, REFUSED):
        raise WireError(f"{_REPLY}: {code} is no error of a client")
    return Error(code, reason)


def _config(content: RecordDict) -> ConfigRecord:
    config = content.get(RECORD)
    if not isinstance(config, ConfigRecord):
        raise WireError("the message holds no record of fedloom")
    return config


def _names(config: ConfigRecord, key: str = _CLIENTS) -> list[str]:
    names = config.get(key)
    if not isinstance(names, list) or not 0 < len(names) <= MAX_CLIENTS:
        raise WireError(f"a message of a hub names 1 to {MAX_CLIENTS:,} clients")
    if not all(isinstance(name, str) and 0 < len(name) <= MAX_NAME for name in names):
        raise WireError(f"a message of a hub holds a name that is no text of 1 to {MAX_NAME} characters")
    [(twice, times)] = Counter(map(str, names)).most_common(1)
    if times > 1:
        raise WireError(f"a message of a hub names client '{printable(twice, 40)}' twice")
    return [str(name) for name in names]


def _column(config: ConfigRecord, key: str, kind: type[Any], length: int) -> list[Any]:
    column = config.get(key)
    if not isinstance(column, list) or len(column) != length or not all(type(value) is kind for value in column):
        raise WireError(f"{_REPLY}.{key}: not one {kind.__name__} for each of {length} clients")
    return column


def write_sum(total: Contribution) -> bytes:
    """Return a sum with the lengths of its members' replies; inverse of `read_sum`."""
    lengths = [member.lengths for member in total.members]
    kinds = lengths[0] if lengths else ()
    arrays = total.to_arrays() | add_prefix(
        "lengths", {kind: np.array([one[kind] for one in lengths]) for kind in kinds}
    )
    return save({name: np.ascontiguousarray(a) for name, a in arrays.items()})


def read_sum(blob: bytes, members: Sequence[Member]) -> Contribution:
    """Return a sum whose members have the lengths of their replies.

    Args:
        blob: Bytes of `write_sum`.
        members: The members, without lengths, in the order of their numbers in the blob.

    Raises:
        WireError: The blob cannot be decoded, or does not have a length for each member.
    """
    try:
        arrays = load(blob)
        total, lengths = Contribution.from_arrays(arrays), group("lengths", arrays)
    except Exception as error:  # parsers of foreign bytes raise errors of any type
        raise WireError(f"the sum cannot be decoded ({error})") from None
    if not set(lengths) <= {UPDATE, GRADIENT} or UPDATE not in lengths:
        raise WireError("the sum has no lengths of updates, or lengths of anything else")
    if any(a.shape != (len(members),) or a.dtype != np.float64 for a in lengths.values()):
        raise WireError(f"the sum does not have a length for each of {len(members)} clients")
    rows = zip(members, rows_of_lengths(lengths), strict=True)
    total.members = [replace(member, lengths=row) for member, row in rows]
    return total
