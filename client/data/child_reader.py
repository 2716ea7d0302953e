"""Reader of tables in a short child process, and the codec by which it returns a data set."""

import dataclasses
import importlib
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from itertools import chain
from typing import IO, Any, cast

import numpy as np

from client.data.dataset import AnyDataset, is_demo
from client.data.read import read_partition
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from common import errors
from common.arrays import Array
from common.errors import DataError, FedloomError
from common.system_calls import end_with_parent
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import Vocabulary

Outline = dict[str, Any]
"""Description of a column: its kind, and what its arrays do not hold."""

PLAIN = (str, int, float, bool, type(None))
"""Types of values that stand in the outline itself."""


class NoColumnError(TypeError):
    """Values that have no common form as a column, such as objects of several classes."""


def encode_column(values: Sequence[Any], arrays: list[Array]) -> Outline:
    """Return the outline of a column, and append its arrays.

    Raises:
        NoColumnError: The values have no common form.
    """
    kinds = {type(value) for value in values}
    if len(kinds) == 2 and type(None) in kinds:
        filled = [value is not None for value in values]
        return {"kind": "optional", "filled": filled, "of": encode_column([v for v in values if v is not None], arrays)}
    if len(kinds) > 1:
        raise NoColumnError(f"{len(kinds)} types in one column")
    kind: type[Any] = next(iter(kinds), str)
    if kind in PLAIN:
        return {"kind": "plain", "values": list(values)}
    if issubclass(kind, (np.ndarray, np.generic)):
        return _encode_arrays(values, arrays) | {"scalar": issubclass(kind, np.generic)}
    if kind is tuple:
        arrays.append(np.array([len(value) for value in values], np.int64))
        return {"kind": "tuple", "of": encode_column([*chain.from_iterable(values)], arrays)}
    return _encode_objects(kind, values, arrays)


def decode_column(outline: Outline, read: Callable[[], Array]) -> list[Any]:
    """Return the values of a column, the inverse of `encode_column`.

    Args:
        outline: Outline of the column.
        read: Function that returns the next array, in the order of their encoding.
    """
    match outline["kind"]:
        case "optional":
            present = iter(decode_column(outline["of"], read))
            return [next(present) if filled else None for filled in outline["filled"]]
        case "arrays":
            return _decode_arrays(read(), read(), scalar=outline["scalar"])
        case "tuple":
            spans = _spans(read())
            values = decode_column(outline["of"], read)
            return [tuple(values[span]) for span in spans]
        case "vocabulary":
            return [_class_of(outline["class"]).from_json(text) for text in outline["json"]]
        case "objects":
            columns = [decode_column(column, read) for column in outline["columns"].values()]
            return [_class_of(outline["class"])(*fields) for fields in zip(*columns, strict=True)]
    return list(outline["values"])


def _encode_objects(kind: type[Any], values: Sequence[Any], arrays: list[Array]) -> Outline:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if issubclass(kind, Vocabulary):
        return {"kind": "vocabulary", "class": name, "json": [value.to_json() for value in values]}
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    if not all(field.init for field in fields) or not fields or _class_of(name) is not kind:
        raise NoColumnError(f"{name} is no dataclass of a module that its fields determine")
    columns = {f.name: encode_column([getattr(value, f.name) for value in values], arrays) for f in fields}
    return {"kind": "objects", "class": name, "columns": columns}


def _encode_arrays(values: Sequence[Any], arrays: list[Array]) -> Outline:
    if len({(value.dtype, value.ndim) for value in values}) > 1 or values[0].dtype.hasobject:
        raise NoColumnError("arrays of several types, or of objects, in one column")
    arrays.append(np.array([value.shape for value in values], np.int64))
    arrays.append(np.concatenate([np.ravel(value) for value in values]))
    return {"kind": "arrays"}


def _decode_arrays(shapes: Array, content: Array, *, scalar: bool) -> list[Any]:
    cuts = [content[span] for span in _spans(shapes.prod(axis=1))]
    if scalar:
        return [part[0] for part in cuts]
    return [part.reshape(shape) for part, shape in zip(cuts, shapes.tolist(), strict=True)]


def _spans(lengths: Array) -> list[slice]:
    """Return consecutive slices of these lengths."""
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return list(map(slice, [0, *ends], ends))


def _class_of(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute, None)


DATASET, ERROR = "dataset", "error"
"""Keys of an answer."""


def read_partition_apart(
    task: str,
    source: str,
    part: tuple[int, int],
    seed: int = 0,
    vocabulary: Vocabulary | None = None,
    dialect: Dialect = DEFAULT_DIALECT,
) -> AnyDataset:
    """Read like `read_partition`, with the same errors; tables are read in a child process.

    Raises:
        DataError: The source cannot be read, has fewer units than partitions, or needs more memory than there is.
    """
    if is_demo(source):
        return read_partition(task, source, part, seed, vocabulary)
    order = [task, source, part, seed, vocabulary and vocabulary.to_json(), dialect.to_fields()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as child:
        orders, answers = cast(IO[bytes], child.stdin), cast(IO[bytes], child.stdout)
        with suppress(BrokenPipeError), orders:
            orders.write(json.dumps(order).encode())
        with suppress(EOFError):
            answer = _receive_outline(answers)
            if DATASET in answer:
                dataset: AnyDataset = decode_column(answer[DATASET], lambda: _receive_array(answers))[0]
                return dataset
            if ERROR in answer:
                raise _decode_error(*answer[ERROR])
            # a task from outside may hold its units in objects that are no dataclasses
            return read_partition(task, source, part, seed, vocabulary, dialect)
    raise DataError(f"the process that reads the data ended with exit code {child.returncode}", source)


def main() -> None:
    """Answer the order on stdin by a data set or an error on stdout."""
    end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent finishes its work before it leaves
        signal.signal(number, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # nothing that is printed gets between the arrays
        task, source, part, seed, names, form = json.load(sys.stdin)
        arrays: list[Array] = []
        try:
            vocabulary = read_vocabulary(task, names) if names else None
            dataset = read_partition(task, source, tuple(part), seed, vocabulary, Dialect.of(**form))
            answer: dict[str, Any] = {DATASET: encode_column([dataset], arrays)}
        except FedloomError as error:
            answer = {ERROR: [type(error).__name__, error.args, vars(error)]}
        except NoColumnError:
            answer = {}
        answers.write(json.dumps(answer).encode() + b"\n")
        for array in arrays:
            _send_array(answers, array)


def _decode_error(name: str, arguments: Sequence[str], attributes: Mapping[str, Any]) -> FedloomError:
    kind = getattr(errors, name)
    error: FedloomError = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


def _send_array(answers: IO[bytes], array: Array) -> None:
    answers.write(json.dumps([array.dtype.str, array.shape]).encode() + b"\n")
    answers.write(np.ascontiguousarray(array).tobytes())


def _receive_array(answers: IO[bytes]) -> Array:
    """Return the next array.

    Raises:
        EOFError: The child ended before its last byte.
    """
    dtype, shape = _receive_outline(answers)
    content = bytearray(math.prod(shape) * np.dtype(dtype).itemsize)
    if cast(BufferedReader, answers).readinto(content) < len(content):
        raise EOFError
    return np.frombuffer(content, dtype).reshape(shape)


def _receive_outline(answers: IO[bytes]) -> Any:
    """Return the next line's JSON.

    Raises:
        EOFError: The child ended before it wrote one.
    """
    if not (line := answers.readline()).endswith(b"\n"):
        raise EOFError
    return json.loads(line)


if __name__ == "__main__":
    main()
