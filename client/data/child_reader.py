"""Reader of tables in a short child process.

A resident client thus never holds PyArrow and the text of its tables.
"""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from typing import IO, Any, cast

import numpy as np

from client.data.column_codec import NoColumnError, decode_column, encode_column
from client.data.dataset import AnyDataset
from client.data.read import read_partition
from client.data.sources import is_demo
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from common import errors
from common.arrays import Array
from common.errors import DataError, FedloomError
from common.system_calls import end_with_parent
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import Vocabulary

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
    form = {"columns": dict(dialect.columns), "decimal": dialect.decimal, "dates": dialect.dates}
    order = [task, source, part, seed, vocabulary and vocabulary.to_json(), form]
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
            dataset = read_partition(task, source, tuple(part), seed, vocabulary, Dialect(**form))
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
