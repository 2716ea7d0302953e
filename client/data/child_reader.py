"""Reader of tables in a short child process, since PyArrow keeps its memory for the life of a process."""

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, cast

from client.data.dataset import AnyDataset, is_demo
from client.data.read import read_partition
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from common import errors
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
        with suppress(EOFError, pickle.UnpicklingError):
            answer: dict[str, Any] = pickle.load(answers)
            if DATASET in answer:
                dataset: AnyDataset = answer[DATASET]
                return dataset
            if ERROR in answer:
                raise _decode_error(*answer[ERROR])
            # a task from outside may hold its units in objects that cannot be pickled
            return read_partition(task, source, part, seed, vocabulary, dialect)
    raise DataError(f"the process that reads the data ended with exit code {child.returncode}", source)


def main() -> None:
    """Answer the order on stdin by a data set or an error on stdout."""
    end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent finishes its work before it leaves
        signal.signal(number, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # nothing that is printed gets into the answer
        task, source, part, seed, names, form = json.load(sys.stdin)
        answer: dict[str, Any] = {}
        try:
            vocabulary = read_vocabulary(task, names) if names else None
            answer = {DATASET: read_partition(task, source, tuple(part), seed, vocabulary, Dialect(**form))}
        except FedloomError as error:
            answer = {ERROR: [type(error).__name__, error.args, vars(error)]}
        try:
            content = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError):
            content = pickle.dumps({})
        answers.write(content)


def _decode_error(name: str, arguments: Sequence[str], attributes: Mapping[str, Any]) -> FedloomError:
    kind = getattr(errors, name)
    error: FedloomError = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


if __name__ == "__main__":
    main()
