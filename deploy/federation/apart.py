"""Commands in a process of their own, whose errors come back as classes."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile
from typing import Any

from common.errors import ConfigError, ConnectError, DataError, FedloomError, RefusedError, RunError

CLASSES: dict[int, type[FedloomError]] = {2: ConfigError, 3: DataError, 4: RefusedError, 5: ConnectError}
"""Exit code of the command line -> class of error; others are a RunError."""


def call(words: Sequence[str], report: Callable[[str], object] = lambda line: None) -> list[str]:
    """Run a command to its end; return the lines of its stdout.

    Args:
        words: Name of the command, and its options.
        report: Receiver of each line of its stderr.

    Raises:
        FedloomError: It failed; the class is that of its exit code.
    """
    errors: list[str] = []
    with TemporaryFile("w+") as output:
        command = [sys.executable, "-m", "deploy.cli", *words]
        with subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True) as process:
            try:
                for line in process.stderr or ():
                    errors.append(line)
                    report(line)
            except BaseException:
                process.terminate()  # as Ctrl-C: a run can be resumed
                raise
        if process.returncode:
            text = "".join(errors).rpartition("fedloom: ")[2].strip()
            raise CLASSES.get(process.returncode, RunError)(text or f"{words[0]} ended by code {process.returncode}")
        output.seek(0)
        return output.read().splitlines()


def call_for_json(words: Sequence[str], report: Callable[[str], object] = lambda line: None) -> dict[str, Any]:
    """Run a command with `--json`; return the object that it prints last.

    Raises:
        FedloomError: It failed; the class is that of its exit code.
    """
    return dict(json.loads(call([*words, "--json"], report)[-1]))
