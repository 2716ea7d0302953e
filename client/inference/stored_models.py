"""Models of finished runs: in the state folders of clients, or adapted to a client that joins late.

Nothing is sent to the server.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors.numpy import load

from client.checks import read_about
from client.data.dataset import fingerprint, resolve_source
from client.enrolment import ENROLMENT
from client.hub.state import load_stored
from client.inference.model_choice import has_own_parameters, models_of_client
from client.session import MODEL, Session
from client.state import DiskStore
from client.training.comparison import MEASURED, from_document
from common.arrays import Arrays, add_prefix
from common.config.parse import from_json, to_json
from common.config.run import RunConfig
from common.models import parameters_of, split_statics
from common.tasks.registry import read_vocabulary
from common.tasks.spec import SHARED, SUMS
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import AssignRequest, EnrolRequest, EvaluateRequest, Metrics, TrainRequest


@dataclass(frozen=True)
class StoredModel:
    """Finished run in a client's state.

    Args:
        run: Name of the run.
        client: Name of the client.
        config: Configuration of the run.
        vocabulary: Vocabulary of the run.
        model: Parameters that the client uses, shared or personalized, whichever it chose for the finished model.
        shared: Parameters of the finished model as the server sent them.
        statics: Summed statistics, and pooled properties, that the server sent with the model.
        grown: True if the client took part with other data than these, such as fewer rows.
    """

    run: str
    client: str
    config: RunConfig
    vocabulary: Vocabulary
    model: Arrays
    shared: Arrays
    statics: Arrays
    grown: bool


SINCE = ", whose data have changed since"
"""Text about a client that took part with other data than it has now."""


def newest_stored(task: str, data: str, run: str, roots: Sequence[Path], client: str = "") -> StoredModel | None:
    """Return the newest finished run that a client of these data stored; None if none did.

    A client is of these data if it is the named one, if it trained on the same files or a copy of them, or if it trained on
    earlier data at the same path.
    A root has folders `<root>/<client>/<fingerprint of its data>/<run>/`. Empty names of a run and a client are any.

    Raises:
        DataError: The data cannot be read.
        StateError: A client's state is damaged.
    """
    mark = fingerprint(data, (0, 1), 0)[:16]
    folders = [folder for root in roots for folder in root.glob(f"{client or '*'}/*") if folder.is_dir()]
    of_these = [folder for folder in folders if client or folder.name == mark or _trained_on(folder, data)]
    paths = [path for folder in of_these for path in folder.glob(f"{run or '*'}/{MODEL}")]
    newest_first = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)
    return next(_of_task(task, newest_first, mark), None)


def _of_task(task: str, paths: Sequence[Path], mark: str) -> Iterator[StoredModel]:
    for path in paths:
        folder, run = path.parents[1], path.parent.name
        store = DiskStore(folder)
        document = json.loads(store.read(run, ENROLMENT) or b"{}")
        if not document or (config := from_json(document["config"])).task != task:
            continue
        vocabulary = read_vocabulary(task, document["catalogue"])
        [shared], statics = split_statics(load(path.read_bytes()), parameters_of(config, vocabulary))
        first, *others = models_of_client(config.method_options, shared, load_stored(folder, run)).values()
        uses = from_document(store.read(run, MEASURED)).uses
        model = {} if uses.get(SUMS) else {**shared, **(others[0] if others and uses.get(SHARED) else first)}
        grown = folder.name != mark
        yield StoredModel(run, folder.parent.name, config, vocabulary, model, shared, statics, grown)


def _trained_on(folder: Path, data: str) -> bool:
    about = read_about(folder)
    return (about.get("data"), about.get("part")) == (resolve_source(data), [0, 1])


def adapt(session: Session, config: RunConfig, vocabulary: Vocabulary, trained: Arrays) -> Metrics:
    """Train the private parameters of a run's model, with the shared ones fixed, and store the model.

    Under methods without such parameters, as FedAvg, the finished model is stored as it is. Under a method that
    adapts the shared model, it takes the steps of that method. A client without training data stores the first model.

    The run has no noise, since nothing is sent. `trained` has the summed statistics from which it started.

    Returns:
        Metrics on the client's held-out data: of its model, of the baselines and, with a prefix, of the shared model.

    Raises:
        RefusedError: The owner's policy forbids such a run, or the data do not fit.
    """
    models, statics = split_statics(trained, parameters_of(config, vocabulary))
    enrolled = session.enrol(EnrolRequest(config.run_id, to_json(config), vocabulary.to_json()))
    enrolment, trains = enrolled.enrolment, enrolled.examples > 0
    shared = _closest(session, enrolment, models, statics) if trains and len(models) > 1 else models[0]
    first = config.first_rounds + 1
    # clients train a private part or model; one adapted at each evaluation is none
    trains = trains and config.capabilities.own_model != "adapted" and has_own_parameters(config, shared)
    for number in range(first, config.rounds + 1 if trains else first):
        session.train(TrainRequest(number, enrolment, shared, statics=statics))
    return session.evaluate(EvaluateRequest(config.rounds, enrolment, shared, "test", statics, final=True)).metrics


def _closest(session: Session, enrolment: str, models: Sequence[Arrays], statics: Arrays) -> Arrays:
    """Return the model of the cluster with the lowest training loss on the client's data."""
    sent = {name: a for j, model in enumerate(models) for name, a in add_prefix(str(j), model).items()}
    losses = session.assign(AssignRequest(1, enrolment, sent, "loss", statics=statics)).losses
    return models[int(min(losses, key=lambda key: losses[key]))]
