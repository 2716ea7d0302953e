"""Models of finished runs on this machine, by a checkpoint or a client, and runs opened for data."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from client.data.read import read_all, read_titles, with_test
from common.arrays import Arrays
from common.config.parse import parse
from common.errors import ConfigError
from common.tasks.registry import read_vocabulary
from deploy.cli.options import LOCAL, DataRequest
from deploy.data.partitions import PARTITIONS, STATE, remembered
from deploy.federation.runs import origin_of, stored_options
from deploy.tasks.run import TrainedRun
from server.record.folder import BEST_MODEL, FORGOTTEN_FILE, RunDirectory

if TYPE_CHECKING:
    from client.inference.stored_models import StoredModel


@dataclass(frozen=True)
class Checkpointed:
    """Model of one round.

    Args:
        model: Parameters, with the summed statistics from which the model started.
        about: Round and reason of the choice, such as `round 13, the best on validation data`.
        is_default: True if it is the model that clients stored as the finished one.
    """

    model: Arrays
    about: str
    is_default: bool


def load_checkpoint(folder: RunDirectory, checkpoint: str = "") -> Checkpointed:
    """Return the model of a run.

    Args:
        folder: Folder of the run.
        checkpoint: `best`, `final` or the number of a round; empty for `best` if the run has such a model, else `final`.

    Raises:
        ConfigError: The run has no such checkpoint, or has no model in that round yet.
        StateError: The model is missing or damaged.
    """
    require_remade(folder)
    has_best = (folder.path / BEST_MODEL).exists()
    if checkpoint == "best" and not has_best:
        raise ConfigError(
            f"run '{folder.path.name}' has no model of a best round: it had no validation data, or its clients keep layers"
            " to themselves; use --checkpoint final"
        )
    if checkpoint in ("", "best") and has_best:
        model, about = folder.load_model(BEST_MODEL)
        return Checkpointed(model, f"round {about.get('round', '?')}, the best on validation data", is_default=True)
    if checkpoint in ("", "final"):
        model, about = folder.load_model()
        _require_round(folder, number := about.get("round", "?"))
        return Checkpointed(model, f"round {number}, the last", is_default=not has_best)
    rounds = folder.checkpoints.rounds()
    if not checkpoint.isdecimal() or int(checkpoint) not in rounds:
        stored = ", ".join(map(str, rounds)) or "none"
        raise ConfigError(
            f"--checkpoint {checkpoint}: run '{folder.path.name}' stores the rounds {stored}; use one of them, best or final"
        )
    _require_round(folder, checkpoint)
    groups = folder.checkpoints.load(int(checkpoint)).groups
    model = {**groups["model"], **groups.get("statics", {})}
    return Checkpointed(model, f"round {checkpoint}", is_default=False)


def require_remade(folder: RunDirectory) -> None:
    """Check that a run without a forgotten client has been made again.

    Raises:
        ConfigError: It has no result yet.
    """
    run, origin = folder.path.name, origin_of(folder.path)
    if (folder.path / FORGOTTEN_FILE).exists() and folder.result() is None:
        how = f"fedloom {origin.command if origin else 'serve'} --resume {run}"
        raise ConfigError(f"run '{run}' has no model yet, since a client is forgotten; make it again with {how}")


def _require_round(folder: RunDirectory, number: str) -> None:
    """Check that a run has a model in a round: what follows from all sums, or was trained.

    Raises:
        ConfigError: It has none yet.
    """
    config, run = parse(stored_options(folder)), folder.path.name
    first = config.rounds if config.capabilities.closed_form else max(config.first_rounds, 1)
    if number.isdecimal() and int(number) < first:
        remedy = f"; continue it with --resume {run}" if folder.result() is None else ""
        raise ConfigError(f"run '{run}' has its first model in round {first}, not in round {number}{remedy}")


def find_stored_model(task: str, data: str, run: str, state_dir: Path, client: str = "") -> "StoredModel | None":
    """Return the newest model that a client of these data stored; None if none did.

    Looks into `state_dir` and into the state folders of federations that `fedloom up` ran here. Arguments are those of
    `newest_stored`.

    Raises:
        ConfigError: A client is named that stores no such run.
    """
    from client.inference.stored_models import newest_stored  # it imports what trains

    roots = [state_dir, PARTITIONS / STATE, *(LOCAL / "up").glob("*/client-*/state")]
    found = newest_stored(task, data, run, roots, client)
    if client and not found:
        of_run = f" of run '{run}'" if run else ""
        raise ConfigError(
            f"--client {client}: no such client stores a finished {task} run{of_run} in {state_dir};"
            " give its --state-dir, or remove --client"
        )
    return found


def open_run(folder: RunDirectory, task: str, source: DataRequest, state_dir: Path, checkpoint: str = "") -> TrainedRun:
    """Return a finished run with its model of that checkpoint, to be applied to the data."""
    chosen = load_checkpoint(folder, checkpoint)
    source = remembered(source, folder.path, task, state_dir)
    data, dialect = source.data, source.dialect
    name, vocabulary = folder.path.name, read_vocabulary(task, folder.catalogue())
    trained = TrainedRun(
        name=name,
        config=parse(stored_options(folder)),
        vocabulary=vocabulary,
        model=chosen.model,
        about=chosen.about,
        data=data,
        read=cache(lambda test: read_all(task, with_test(task, data, test), vocabulary=vocabulary, dialect=dialect)),
        find_stored=cache(
            lambda client: find_stored_model(task, data, name, state_dir, client) if chosen.is_default else None
        ),
        read_titles=cache(lambda: read_titles(data)),
    )
    return trained if checkpoint else replace(trained, baseline=BaselineChoice(trained))


MOST_UNITS = 200
"""Largest number of units of the data by which a baseline is chosen, evenly spaced."""


@dataclass
class BaselineChoice:
    """Choice of the baseline that is better than a model on held-out parts of the data; empty if none is.

    Args:
        run: Run with its data.
        found: Identity of a model's arrays -> choice.
    """

    run: TrainedRun
    found: dict[frozenset[int], str] = field(default_factory=dict)

    def __call__(self, trained: Arrays) -> str:
        """Return the name of the baseline; computed once for a model."""
        key = frozenset(map(id, trained.values()))
        if key not in self.found:
            self.found[key] = self._choose(trained)
        return self.found[key]

    def _choose(self, trained: Arrays) -> str:
        from client.inference.model_choice import fit_client_only
        from client.tasks.registry import build_learner
        from client.training.comparison import choose_answer
        from common.models import parameters_of, split_statics

        config, dataset = self.run.config, self.run.read("")
        units = dataset.units[:: max(1, -(-len(dataset.units) // MOST_UNITS))]
        learner = build_learner(config, replace(dataset, units=units))
        [model], statics = split_statics(trained, parameters_of(config, dataset.vocabulary))
        return choose_answer(config, learner, {"": fit_client_only(config, learner, model)}, statics)
