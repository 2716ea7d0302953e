"""Steps that the training commands share: vocabulary, SuperLink, result."""

import json
from collections.abc import Sequence
from pathlib import Path

from client.data.dataset import AnyDataset
from client.data.sources import is_demo
from common.config.run import RunConfig
from common.errors import RunError
from deploy.certificates import Certificates
from deploy.cli.output import note, print_object
from deploy.client_data import notes, read_catalogue, warnings
from deploy.commands.resume import run_vocabulary
from deploy.commands.runs import runs_folder
from deploy.files import write_file
from deploy.report.launch_record import Command, remember
from deploy.superlink import SuperLinkSettings
from server.artifacts import RunDirectory
from server.events import Result, result_to_json


def with_vocabulary_of(parts: Sequence[AnyDataset], config: RunConfig, data: str, home: Path) -> RunConfig:
    """Return the run with its clients' vocabulary, stored below `home`; print notes and warnings."""
    for line in (*notes(parts), *warnings(config, parts)):
        note(f"{data}: {line}")
    if is_demo(data):
        return config
    vocabulary = home / "catalogue.json"
    write_file(vocabulary, parts[0].vocabulary.to_json().encode(), overwrite=True)
    return config.model_copy(update={"catalogue": str(vocabulary)})


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
    folder: Path, files: Certificates, port: int, control_port: int, host: str = "127.0.0.1"
) -> SuperLinkSettings:
    """Return the settings of a SuperLink that writes runs where this command reads them."""
    return SuperLinkSettings(
        folder=folder,
        certificates=files,
        authenticate=True,
        database=True,
        host=host,
        port=port,
        control_port=control_port,
        environment={"FEDLOOM_RUNS": str(runs_folder()), "OMP_NUM_THREADS": "1"},
    )


def finish(result: Result, json_wanted: bool) -> None:
    """Print the result as JSON if wanted.

    Raises:
        RunError: The run failed.
    """
    if json_wanted:
        print_object(json.loads(result_to_json(result)))
    if result.status != "completed":
        raise RunError(f"the run failed: {result.reason}")
