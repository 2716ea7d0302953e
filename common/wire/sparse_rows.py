"""Row-sparse encoding of table updates, equal to the full table bit for bit, and its size. Pure.

A table `name` whose non-zero rows take fewer bytes is sent as `name@rows` (ids, ascending) and `name@values` (rows).
The ids reveal which rows a client changed; a full table reveals the same by its zeros.

Sizes of arrays equal those of `safetensors.numpy.save`: a length in 8 bytes, a JSON header padded to multiples of 8, then the
numbers.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from common.arrays import Array, Arrays, Flags, Ints
from common.errors import WireError
from common.wire.messages import TrainReply

ROWS, VALUES = "@rows", "@values"


def compress(update: Mapping[str, Array]) -> Arrays:
    """Return the update with each table (n × d) as its non-zero rows and their ids if that is smaller.

    Arrays that are rows of a table already are returned unchanged.
    """
    compressed: Arrays = {}
    for name, a in update.items():
        touched = _touched(a)
        values = a[touched] if a.ndim == 2 else a
        if a.ndim == 2 and not name.endswith(VALUES) and touched.nbytes + values.nbytes < a.nbytes:
            compressed |= {name + ROWS: touched, name + VALUES: values}
        else:
            compressed[name] = a
    return compressed


def named_rows(table: str, ids: Ints, values: Array) -> Arrays:
    """Return rows of a table with their ids, ascending, as `expand` reads them."""
    return {table + ROWS: ids.astype(_ids(int(ids.max(initial=0)) + 1)), table + VALUES: values}


def expand(received: Mapping[str, Array], template: Mapping[str, Array], what: str = "update") -> Arrays:
    """Restore full tables of `template`'s shapes and dtypes; inverse of `compress`.

    Other arrays are unchanged.

    Raises:
        WireError: Rows of a table do not fit the template; names `what` and the table.
    """
    tables = _tables(received, template)
    sparse = {n + suffix for n in tables for suffix in (ROWS, VALUES)}
    whole = {n: a for n, a in received.items() if n not in sparse}
    return whole | {n: _table(f"{what}: array '{n}'", n, received, template) for n in tables}


def expand_reply(reply: TrainReply, model: Mapping[str, Array]) -> TrainReply:
    """Return the reply with full tables, whichever way it was sent.

    Raises:
        WireError: Rows do not fit the model's tables.
    """
    if not _tables(reply.update, model) and not _tables(reply.gradient, model):
        return reply
    update, gradient = expand(reply.update, model), expand(reply.gradient, model, "gradient")
    return replace(reply, update=update, gradient=gradient)


def check_rows(received: Mapping[str, Array], template: Mapping[str, Array], what: str = "update") -> Arrays:
    """Return a template of the arrays as received, with the sent rows of tables.

    Raises:
        WireError: Rows of a table do not fit the template; names `what` and the table.
    """
    tables = _tables(received, template)
    for n in tables:
        _check_table(f"{what}: array '{n}'", n, received, template)
    sent = {n + suffix: received[n + suffix] for n in tables for suffix in (ROWS, VALUES)}
    return {n: a for n, a in template.items() if n not in tables} | sent


def split_rows(update: Mapping[str, Array]) -> Iterator[tuple[str, Array | None, Array]]:
    """Yield the name of each parameter, the ids of its rows or None if all were sent, and its numbers."""
    for name, a in update.items():
        if name.endswith(VALUES) and name.removesuffix(VALUES) + ROWS in update:
            yield name.removesuffix(VALUES), update[name.removesuffix(VALUES) + ROWS], a
        elif not (name.endswith(ROWS) and name.removesuffix(ROWS) + VALUES in update):
            yield name, None, a


def numbers_of(update: Mapping[str, Array]) -> Arrays:
    """Return the numbers of an update, without row ids."""
    return {name: a for name, _, a in split_rows(update)}


def rows_of(received: Mapping[str, Array]) -> Arrays:
    """Return the received row ids of each table that was sent as rows."""
    return {name.removesuffix(ROWS): a for name, a in received.items() if name.endswith(ROWS)}


def _touched(a: Array) -> Array:
    """Return the ids of rows with any bit set (−0.0 included); none for an array that is not a table."""
    if a.ndim != 2 or a.size == 0:
        return np.empty(0, np.int32)
    return np.flatnonzero(_bits(a).any(axis=1)).astype(_ids(len(a)))


def _bits(a: Array) -> Array:
    return np.ascontiguousarray(a).view(np.uint8 if a.dtype.itemsize not in (2, 4, 8) else f"u{a.dtype.itemsize}")


def _ids(rows: int) -> type[np.signedinteger[Any]]:
    """Return the type of the ids of a table's rows."""
    return np.int32 if rows <= np.iinfo(np.int32).max else np.int64


def _tables(received: Mapping[str, Array], template: Mapping[str, Array]) -> list[str]:
    return [n.removesuffix(ROWS) for n in received if n.endswith(ROWS) and n not in template]


def _table(what: str, name: str, received: Mapping[str, Array], template: Mapping[str, Array]) -> Array:
    _check_table(what, name, received, template)
    table = np.zeros_like(template[name])
    table[received[name + ROWS]] = received[name + VALUES]
    return table


def _check_table(what: str, name: str, received: Mapping[str, Array], template: Mapping[str, Array]) -> None:
    like, ids, values = template.get(name), received[name + ROWS], received.get(name + VALUES)
    if like is None or like.ndim != 2 or name in received or values is None:
        raise WireError(f"{what}: rows belong to no table of the model, are repeated, or lack their values")
    if ids.ndim != 1 or ids.dtype not in (np.int32, np.int64):
        raise WireError(f"{what}: row ids are {ids.dtype}{list(ids.shape)}, expected a vector of int32 or int64")
    if values.dtype != like.dtype or values.shape != (len(ids), like.shape[1]):
        expected = f"{like.dtype}{[len(ids), like.shape[1]]}"
        raise WireError(f"{what}: rows are {values.dtype}{list(values.shape)}, expected {expected}")
    if np.any(ids[1:] <= ids[:-1]):
        raise WireError(f"{what}: row ids are repeated or not in ascending order")
    if ids.size and (ids[0] < 0 or ids[-1] >= len(like)):
        raise WireError(f"{what}: row ids are out of range; the table has {len(like)} rows")


DTYPE_CODES = {
    **{"bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "float16": "F16"},
    **{"int32": "I32", "uint32": "U32", "float32": "F32", "float64": "F64", "int64": "I64", "uint64": "U64"},
}
"""NumPy's name of a dtype -> its name in a header, in the ascending order of a file."""

_ORDER = {name: index for index, name in enumerate(DTYPE_CODES)}
_ENTRY = len('"":{"dtype":"","shape":[],"data_offsets":[,]},')
_TENS = 10 ** np.arange(1, 19)


class StackedArray(NamedTuple):
    """One array in each of the messages of K clients.

    Args:
        name: Name, ASCII without quotes and backslashes.
        dtype: NumPy's name of its dtype.
        present: True for each message that has it, (K,).
        rows: Length of its first dimension, (K,).
        rest: Other dimensions; None for a scalar, which has no first one.
    """

    name: str
    dtype: str
    present: Flags
    rows: Ints
    rest: tuple[int, ...] | None

    @property
    def nbytes(self) -> Ints:
        """Bytes of the numbers, (K,)."""
        return self.rows * (math.prod(self.rest or ()) * np.dtype(self.dtype).itemsize)

    @property
    def shape_length(self) -> Ints:
        """Length of the shape as text, (K,)."""
        if self.rest is None:
            return np.zeros_like(self.rows)
        return _digits(self.rows) + sum(1 + len(str(n)) for n in self.rest)


def blob_sizes(arrays: Sequence[StackedArray]) -> Ints:
    """Return the bytes of each client's arrays, (K,)."""
    header, end = np.ones_like(arrays[0].rows), np.zeros_like(arrays[0].rows)  # {} without the last comma
    for array in sorted(arrays, key=lambda array: (-_ORDER[array.dtype], array.name)):
        start, end = end, end + np.where(array.present, array.nbytes, 0)
        fixed = _ENTRY + len(array.name) + len(DTYPE_CODES[array.dtype])
        header += np.where(array.present, fixed + array.shape_length + _digits(start) + _digits(end), 0)
    return 8 + -(-np.maximum(header, len("{}")) // 8) * 8 + end


def _digits(numbers: Ints) -> Ints:
    return np.searchsorted(_TENS, numbers, side="right") + 1


def stacked_sizes(
    clients: int, stacked: Mapping[str, Array], gathered: Mapping[str, Ints], *, compressed: bool
) -> list[int]:
    """Return the bytes of each client's arrays in a message.

    Args:
        clients: Number K of clients.
        stacked: Arrays of the clients, K × ….
        gathered: Table that is sent as gathered rows -> number of each client's rows.
        compressed: True if `compress` applies to them.
    """
    always, columns = (
        np.ones(clients, bool),
        [StackedArray("", "bool", np.zeros(clients, bool), np.zeros(clients, np.int64), ())],
    )
    for name, a in stacked.items():
        rows, rest = (a.shape[1], a.shape[2:]) if a.ndim > 1 else (1, None)
        whole = StackedArray(name, a.dtype.name, always, np.full(clients, rows), rest)
        if name in gathered:
            columns += _as_rows(whole, gathered[name])
        elif compressed and a.ndim == 3 and a.size and (touched := _count_touched(a)).min() < rows:
            columns += _smaller(whole, touched)
        else:
            columns.append(whole)
    return [int(size) for size in blob_sizes(columns)]


def _smaller(whole: StackedArray, touched: Ints) -> tuple[StackedArray, ...]:
    """Return the arrays of tables of which so many rows are touched, as `compress` chooses them."""
    ids, values = _as_rows(whole, touched)
    is_smaller = ids.nbytes + values.nbytes < whole.nbytes
    return whole._replace(present=~is_smaller), *(part._replace(present=is_smaller) for part in (ids, values))


def _as_rows(whole: StackedArray, touched: Ints) -> tuple[StackedArray, StackedArray]:
    """Return the ids and the values of so many rows of tables."""
    ids = StackedArray(whole.name + ROWS, _ids(int(whole.rows[0])).__name__, whole.present, touched, ())
    return ids, StackedArray(whole.name + VALUES, whole.dtype, whole.present, touched, whole.rest)


def _count_touched(tables: Array) -> Ints:
    """Return the number of rows with any bit set in each of K tables.

    Most tables are touched in the first column of all rows or in few rows; a product is quicker than `any` over short rows.
    """
    bits = _bits(tables)
    if (bits[..., 0] != 0).all():
        return np.full(len(bits), bits.shape[1])
    is_set = (bits != 0).astype(np.float32)
    touched: Ints = np.count_nonzero(is_set @ np.ones(tables.shape[2], np.float32), axis=1)
    return touched
