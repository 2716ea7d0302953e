"""Steps that the training commands share: start or continuation, vocabulary, SuperLink, result."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from client.data.dataset import AnyDataset, is_demo
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.text import count
from deploy.cli.options import RunRequest
from deploy.cli.output import find_error_class, note, print_object
from deploy.data.sources import notes, read_catalogue, warnings
from deploy.federation.request import run_vocabulary
from deploy.federation.runs import FILE as ORIGIN_FILE
from deploy.federation.runs import Command, remember, runs_folder
from deploy.files import write_file
from deploy.keys.certificates import Certificates
from deploy.superlink.superlink import SuperLinkSettings
from server.record.events import ENDED_EARLY
from server.record.folder import LOCK_FILE, RunDirectory
from server.record.result import Result, result_to_json


def with_vocabulary_of(parts: Sequence[AnyDataset], config: RunConfig, data: str, home: Path) -> RunConfig:
    """Return the run with its clients' vocabulary, stored below `home`; print notes and warnings.

    Raises:
        ConfigError: The clients are too few for secure sums.
        DataError: No client has a record to train on.
    """
    fewest = config.secure_sums.fewest
    if config.privacy.trust == "helpers" and len(parts) < fewest:
        raise ConfigError(
            f"a masked sum needs {count(fewest, 'client')}, the data make {len(parts)};"
            " raise --clients or set secure-sums.min-sum"
        )
    for line in (*notes(parts), *warnings(config, parts)):
        note(f"{data}: {line}")
    if not any(build_learner(config, part).examples for part in parts):
        raise DataError("no client has a record to train on; add records to the data", data)
    if is_demo(data):
        return config
    vocabulary = home / "catalogue.json"
    write_file(vocabulary, parts[0].vocabulary.to_json().encode(), overwrite=True)
    return config.model_copy(update={"catalogue": str(vocabulary)})


def config_catalogue(request: RunRequest, config: RunConfig) -> Path | None:
    """Return the vocabulary file that a new run's configuration file names; None without one."""
    return Path(config.catalogue) if request.config and config.catalogue != "demo" else None


def with_catalogue(config: RunConfig, catalogue: Path | None) -> RunConfig:
    """Return the run of a server without data, with the vocabulary in the file.

    Raises:
        ConfigError: The run is resumed and has another vocabulary.
        DataError: The file is missing or holds no vocabulary.
    """
    given = read_catalogue(config.task, catalogue)
    if config.resume:
        run_vocabulary(RunDirectory(runs_folder(), config.run_id), config.task, given)
    return config.model_copy(update={"catalogue": str(catalogue.resolve())}) if catalogue else config


def record_remote_launch(command: Command, config: RunConfig) -> None:
    """Record the start of a run whose clients are elsewhere."""
    if not config.resume:
        remember(runs_folder() / config.run_id, command, "", config.federation.min_clients)


def superlink_of(
    folder: Path,
    files: Certificates,
    port: int,
    control_port: int,
    host: str = "127.0.0.1",
    nodes: Path | None = None,
    *,
    database: bool = False,
) -> SuperLinkSettings:
    """Return the settings of a SuperLink that writes runs where this command reads them.

    `nodes` is the folder with the names of clients by their keys. Without `database` its state is in memory.
    """
    return SuperLinkSettings(
        folder=folder,
        certificates=files,
        authenticate=True,
        database=database,
        host=host,
        port=port,
        control_port=control_port,
        environment={
            "FEDLOOM_RUNS": str(runs_folder()),
            "OMP_NUM_THREADS": "1",
            **({"FEDLOOM_NODES": str(nodes)} if nodes else {}),
        },
        own_app=True,
    )


@contextmanager
def removed_unless_started(run_id: str) -> Iterator[None]:
    """Remove the folder that a command made for its run if the block fails before the run starts."""
    try:
        yield
    except BaseException:
        folder = runs_folder() / run_id
        if not (folder / "config.toml").exists():
            for name in (ORIGIN_FILE, LOCK_FILE):
                (folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # a folder with other files is not ours
                folder.rmdir()
        raise


def finish(result: Result, json_wanted: bool) -> None:
    """Print the result as JSON if wanted.

    Raises:
        FedloomError: The run failed; the class is that of the error that ended it.
    """
    if json_wanted:
        print_object(json.loads(result_to_json(result)))
    if result.status != "completed":
        raise find_error_class(result.error)(f"the run failed: {result.reason}")


def start_or_continue(request: RunRequest) -> RunRequest | None:
    """Return the request with the run to continue if it exists; None if that run is finished.

    Raises:
        ConfigError: No run is named, or the request continues one by --resume.
    """
    if not request.run_id or request.resume:
        raise ConfigError("--resume-if-there needs --run-id NAME, and no --resume")
    folder = RunDirectory(runs_folder(), request.run_id)
    if not (folder.path / "config.toml").exists():
        return request
    result = folder.result()
    rounds = request.rounds or int(folder.config()["rounds"])
    if result and (result.rounds_done >= rounds or result.reason.startswith(ENDED_EARLY)):
        note(f"run '{request.run_id}' is finished; choose another --run-id for a new run")
        return None
    return replace(request, run_id="", resume=request.run_id, config=None)
