"""Walk through the product: files and functions that one operation enters, and returns to a file already left.

A step is a call of a function of the product that lies in another file than the last one called. A step into a file that was
entered before is a *return*. Calls inside one file are no steps, nor is the end of a function. A module that is imported
meanwhile is entered too; files `__init__.py` never count. Each walk has an interpreter of its own.

`python tools/walk.py` prints a table, `--json` the same figures as JSON, `--files WALK` the files of a walk in order.
"""

import argparse
import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("server", "client", "common", "deploy", "fedloom")
"""Folders of the product."""

# Data that follow a change of the product's names: the scenarios below import the product inside functions.
ROUND_STARTS = "configure_train"
"""Function of Flower's strategies with which a round starts."""

HOMES = 2
"""Clients of the measured round."""


@dataclass
class Walk:
    """Calls of functions below some folders.

    Args:
        folders: Absolute paths of folders whose functions count.
        only_after: Name of the function whose second call starts the recording and whose third call ends it; empty: all.
    """

    folders: tuple[str, ...]
    only_after: str = ""
    visits: Counter[str] = field(default_factory=Counter)
    """File -> number of steps into it, in order of the first."""
    functions: set[CodeType] = field(default_factory=set)
    _current: str = ""
    _starts: list[FrameType] = field(default_factory=list)

    @property
    def returns(self) -> int:
        """Number of steps into a file that was entered before."""
        return sum(self.visits.values()) - len(self.visits)

    def figures(self) -> dict[str, int]:
        """Return the figures of the table."""
        return {"files": len(self.visits), "functions": len(self.functions), "returns": self.returns}

    def record(self, frame: FrameType, event: str, argument: object) -> None:
        """Record an event of `sys.setprofile`."""
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event != "call" or not file.startswith(self.folders) or file.endswith("__init__.py"):
            return
        if name == self.only_after and not self._is_within_start(frame):
            self._starts.append(frame)
        if self.only_after and len(self._starts) != 2:
            return
        if name == "<lambda>" or not name.startswith("<"):
            self.functions.add(frame.f_code)
        if file != self._current:
            self.visits[file] += 1
            self._current = file

    def _is_within_start(self, frame: FrameType) -> bool:
        """Return True if a start that still runs calls this function, as an override calls its base class."""
        caller = frame.f_back
        while caller:
            if self._starts and caller is self._starts[-1]:
                return True
            caller = caller.f_back
        return False


@contextmanager
def walking(walk: Walk) -> Iterator[Walk]:
    """Record calls, in threads started meanwhile too."""
    threading.setprofile(walk.record)
    sys.setprofile(walk.record)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def product(*folders: str, only_after: str = "") -> Walk:
    """Return a walk of the product, or of some of its folders."""
    return Walk(tuple(f"{ROOT / folder}/" for folder in folders or FOLDERS), only_after)


def fedavg_round() -> Walk:
    """Walk through the second of three rounds of FedAvg without privacy, of a few homes that train one at a time."""
    from client.data.read import partition, read_all
    from common.config.parse import parse
    from deploy.simulation.grid import simulate_clients

    parts = partition(read_all("rules", f"demo:0-{HOMES}"), HOMES)
    config = parse({"method": "fedavg", "task": "rules", "rounds": 3})
    with TemporaryDirectory() as folder, walking(product(only_after=ROUND_STARTS)) as walk:
        simulate_clients(config, parts, Path(folder), together=1)
    return walk


def noised_release() -> Walk:
    """Walk through the release of an update with noise: reservation in a ledger on disk, and release, without training."""
    import numpy as np

    from client.app import open_session
    from client.settings import ClientSettings
    from common.config.parse import parse, to_json
    from common.models import build_model, parameters
    from common.tasks.registry import TASKS, demo_vocabulary
    from common.wire.messages import EnrolRequest, TrainReply, TrainRequest

    config = parse({"method": "fedavg", "run-id": "walk", "privacy.unit": "client", "privacy.epsilon": 8.0})
    spec, vocabulary = TASKS[config.task], demo_vocabulary(config.task)
    model = parameters(build_model(spec, config.task_run(spec, vocabulary)))
    with TemporaryDirectory() as folder:
        data = Path(folder) / "homes.csv"
        _write_demo(config.task, data)
        session = open_session(ClientSettings(data=str(data), state_dir=Path(folder) / "state", name="ann"))
        enrolled = session.enrol(EnrolRequest("walk", to_json(config), vocabulary.to_json()))
        update = {name: np.zeros_like(array) for name, array in model.items()}
        for number in (1, 2):  # the first release makes the ledger's tables
            request = TrainRequest(number, enrolled.enrolment, model, cost=enrolled.budget / 4)
            with walking(product()) as walk:
                participant = session.participant(request)
                session.release(participant, partial(TrainReply, number, update, {}, 0.0, 1, 1))
    return walk


def csv_to_learner(task: str) -> Walk:
    """Walk through the client's code from a table of its data to the learner of a task."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "own.csv"
        with _fresh_interpreter() as other:  # else its imports would be missing in the walk
            other.submit(_write_demo, task, table).result()
        with walking(product("client")) as walk:
            from client.data.read import read_all
            from client.tasks.registry import build_learner
            from common.config.parse import parse
            from common.tasks.registry import demo_vocabulary

            build_learner(parse({"task": task}), read_all(task, str(table), 0, demo_vocabulary(task)))
    return walk


def _write_demo(task: str, path: Path) -> None:
    """Write a table of demo data."""
    from client.data.read import read_all
    from client.tasks.registry import CLIENT_TASKS

    CLIENT_TASKS[task].write(path, read_all(task, "demo:0-1"))


def _fresh_interpreter() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_find_product)


def _find_product() -> None:
    """Import the product of this working tree, not an installed one."""
    sys.path.insert(0, str(ROOT))


WALKS: dict[str, Callable[[], Walk]] = {
    "fedavg_round": fedavg_round,
    "noised_release": noised_release,
    "csv_ratings": partial(csv_to_learner, "ratings"),
    "csv_traffic": partial(csv_to_learner, "traffic"),
}
"""Name -> walk."""


def visits(name: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the figures of a walk, and file -> number of steps into it."""
    logging.disable(logging.WARNING)
    walk = WALKS[name]()
    return walk.figures(), {Path(file).relative_to(ROOT).as_posix(): steps for file, steps in walk.visits.items()}


def measure(names: Iterable[str] = WALKS) -> dict[str, dict[str, int]]:
    """Return the figures of walks, each in an interpreter of its own."""
    found = {}
    for name in names:
        with _fresh_interpreter() as interpreter:
            found[name], _ = interpreter.submit(visits, name).result()
    return found


def main(words: list[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Files and functions that an operation of the product enters.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--files", choices=WALKS, help="print the files of one walk and the number of steps into each")
    options: Any = parser.parse_args(words)
    if options.files:
        _find_product()
        for file, steps in visits(options.files)[1].items():
            print(f"{steps:5} {file}")
        return
    found = measure()
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'walk':16} {'files':>6} {'functions':>10} {'returns':>8}")
    for name, row in found.items():
        print(f"{name:16} {row['files']:6} {row['functions']:10} {row['returns']:8}")


if __name__ == "__main__":
    main()
