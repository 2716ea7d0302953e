"""What clients on this machine keep of finished runs: the model that each would use, with its private layers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors.numpy import load

from client.data.sources import fingerprint, located
from client.enrolment import ENROLMENT
from client.session import MODEL
from client.state import DiskStore
from client.training.cohort import evaluated
from common.arrays import Arrays
from common.config.flatten import from_json
from common.config.run import RunConfig
from common.errors import ConfigError
from common.tasks.registry import read_vocabulary
from common.tasks.traffic.counts import STATICS
from common.tasks.vocabulary import Vocabulary
from deploy.commands.launch import LOCAL
from deploy.partitioning import DEALT, STATE


@dataclass(frozen=True)
class StoredModel:
    """A finished run, as a client knows it.

    Args:
        run: Name.
        client: Name.
        config: Of the run.
        names: Its vocabulary.
        model: That the client would use, with what counts it was told.
        told: What the server left with the client: the finished model, without the client's own part, and counts.
        pooled: What stood beside the model: everybody's sums, and properties that the client was told as a newcomer.
        grown: Whether the client took part with other data than these, such as fewer.
    """

    run: str
    client: str
    config: RunConfig
    names: Vocabulary
    model: Arrays
    told: Arrays
    pooled: Arrays
    grown: bool


SINCE = ", whose data have changed since"
"""Said of a client that took part with other data than it has now."""


def find_stored_model(task: str, data: str, run: str, state_dir: Path, client: str = "") -> StoredModel | None:
    """What `newest_kept` finds in a state folder and in those of the federations that `fedloom up` ran here.

    Raises:
        ConfigError: A client is named that keeps no such run.
    """
    roots = [state_dir, DEALT / STATE, *(LOCAL / "up").glob("*/client-*/state")]
    found = newest_kept(task, data, run, roots, client)
    if client and not found:
        of_run = f" of run '{run}'" if run else ""
        raise ConfigError(
            f"--client {client}: no such client keeps a finished {task} run{of_run} in {state_dir};"
            " say where its state is with --state-dir, or leave --client out"
        )
    return found


def newest_kept(task: str, data: str, run: str, roots: Sequence[Path], client: str = "") -> StoredModel | None:
    """The newest finished run, or that of name `run`, that a client of these data took part in; None for none.

    A client is of these data if it is the one named, if it trained on just these (another copy of the files will do), or if
    it trained on what lay at this path then.

    Args:
        task: What the data are of.
        data: Their source, as the client was given it.
        run: Name; empty for any.
        roots: State folders, `<root>/<client>/<fingerprint of its data>/<run>/`.
        client: Name; empty for any.

    Raises:
        DataError: The data cannot be read.
        StateError: What was kept is damaged.
    """
    mark = fingerprint(data, (0, 1), 0)[:16]
    folders = [folder for root in roots for folder in root.glob(f"{client or '*'}/*") if folder.is_dir()]
    of_these = [folder for folder in folders if client or folder.name == mark or _trained_on(folder, data)]
    found = [path for folder in of_these for path in folder.glob(f"{run or '*'}/{MODEL}")]
    newest_first = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
    return next(_of_task(task, newest_first, mark), None)


def _of_task(task: str, paths: Sequence[Path], mark: str) -> Iterator[StoredModel]:
    for path in paths:
        folder, run = path.parents[1], path.parent.name
        store = DiskStore(folder)
        document = json.loads(store.read(run, ENROLMENT) or b"{}")
        if document and (config := from_json(document["config"])).task == task:
            kept = load(path.read_bytes())
            shared, pooled = ({n: a for n, a in kept.items() if (n in STATICS) == told} for told in (False, True))
            model = {**shared, **evaluated(config.method_options, shared, store.load(run))[""]}
            names = read_vocabulary(task, document["catalogue"])
            yield StoredModel(run, folder.parent.name, config, names, model, shared, pooled, grown=folder.name != mark)


def _trained_on(folder: Path, data: str) -> bool:
    about = DiskStore(folder).about()
    return (about.get("data"), about.get("part")) == (located(data), [0, 1])
