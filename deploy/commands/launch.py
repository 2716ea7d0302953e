"""Steps that the training commands share: vocabulary, SuperLink, result."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from client.data.dataset import AnyDataset
from client.data.sources import is_demo
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.text import count
from deploy.certificates import Certificates
from deploy.cli.exits import find_error_class
from deploy.cli.options import RunRequest
from deploy.cli.output import note, print_object
from deploy.client_data import notes, read_catalogue, warnings
from deploy.commands.resume import run_vocabulary
from deploy.commands.runs import runs_folder
from deploy.files import write_file
from deploy.report.launch_record import FILE as ORIGIN_FILE
from deploy.report.launch_record import Command, remember
from deploy.superlink import SuperLinkSettings
from server.artifacts import LOCK_FILE, RunDirectory
from server.result import Result, result_to_json


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
