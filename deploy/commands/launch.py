"""What the commands that train share: where local files lie, the vocabulary, the SuperLink, the end."""

from collections.abc import Sequence
from pathlib import Path

from client.data.dataset import AnyDataset
from client.data.sources import is_demo
from common.config.run import RunConfig
from common.errors import RunError
from deploy.certificates import Certificates
from deploy.cli import options as o
from deploy.client_data import notes, read_catalogue, warnings
from deploy.commands.resume import own_catalogue
from deploy.files import write_file
from deploy.superlink import SuperLinkSettings
from server.artifacts import RunDirectory
from server.events import Result, result_to_json

LOCAL = Path(".fedloom")
"""Folder of what `up` and `serve` keep on this machine: certificates, keys, clients' private state. Not for sharing."""

STATE = Path.home() / ".fedloom" / "state"
"""Where clients that join keep their private state, unless told otherwise."""


def speaking(config: RunConfig, data: str, parts: Sequence[AnyDataset], home: Path) -> RunConfig:
    """The run with the vocabulary of its clients' data, kept below `home`; says what there is to say of the data."""
    for note in (*notes(parts), *warnings(config, parts)):
        o.console.print(f"{data}: {note}", soft_wrap=True, markup=False)
    if is_demo(data):
        return config
    names = home / "catalogue.json"
    write_file(names, parts[0].vocabulary.to_json().encode(), overwrite=True)
    return config.model_copy(update={"catalogue": str(names)})


def naming(catalogue: Path | None, config: RunConfig) -> RunConfig:
    """The run of a server that holds no data, with the vocabulary it was given.

    Raises:
        ConfigError: The run goes on, and had another one.
        DataError: The file is missing or no vocabulary.
    """
    names = read_catalogue(config.task, catalogue)
    if config.resume:
        own_catalogue(RunDirectory(o.runs_folder(), config.run_id), config.task, names)
    return config.model_copy(update={"catalogue": str(catalogue.resolve())}) if catalogue else config


def superlink_of(
    folder: Path, files: Certificates, port: int, control_port: int, host: str = "127.0.0.1"
) -> SuperLinkSettings:
    """The settings of a SuperLink whose runs go where this command reads them."""
    return SuperLinkSettings(
        folder=folder,
        certificates=files,
        authenticate=True,
        database=True,
        host=host,
        port=port,
        control_port=control_port,
        environment={"FEDLOOM_RUNS": str(o.runs_folder()), "OMP_NUM_THREADS": "1"},
    )


def finish(result: Result, json: bool) -> None:
    """Print the result where it was asked for; a failed run fails the command."""
    if json:
        o.print_json(result_to_json(result))
    if result.status != "completed":
        raise RunError(f"the run failed: {result.reason}")
