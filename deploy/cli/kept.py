"""What clients on this machine keep of finished runs: the model that each would use, with its private layers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors.numpy import load

from client.cohort import evaluated
from client.data.parts import fingerprint
from client.session import ENROLMENT, MODEL
from client.state import DiskStore
from common.arrays import Arrays
from common.config import RunConfig, Task, from_json
from common.tasks.vocabularies import Names, vocabulary_of


@dataclass(frozen=True)
class Kept:
    """A finished run, as a client with these data knows it."""

    run: str
    config: RunConfig
    names: Names
    model: Arrays


def newest_kept(task: Task, data: str, run: str, roots: Sequence[Path]) -> Kept | None:
    """The newest finished run, or that of name `run`, that a client took part in with just these data; None for none.

    Args:
        task: What the data are of.
        data: Their source, as the client was given it; another copy of the same files will do.
        run: Name; empty for any.
        roots: State folders, `<root>/<client>/<fingerprint of its data>/<run>/`.

    Raises:
        DataError: The data cannot be read.
        StateError: What was kept is damaged.
    """
    mark = fingerprint(data, (0, 1), 0)[:16]
    found = [path for root in roots for path in root.glob(f"*/{mark}/{run or '*'}/{MODEL}")]
    for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True):
        store, name = DiskStore(path.parents[1]), path.parent.name
        document = json.loads(store.read(name, ENROLMENT) or b"{}")
        if document and (config := from_json(document["config"])).task == task:
            model = evaluated(config.chosen, load(path.read_bytes()), store.load(name))[""]
            return Kept(name, config, vocabulary_of(task, document["catalogue"]), model)
    return None
