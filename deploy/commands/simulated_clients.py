"""Clients of `fedloom simulate`: their configuration and their partitions of the data."""

from collections.abc import Sequence
from pathlib import Path

from client.data.dataset import AnyDataset
from client.data.read import with_test
from common.config.run import RunConfig
from common.text import count
from deploy.cli.options import LOCAL, DataRequest, RunRequest
from deploy.cli.output import console
from deploy.client_data import partition_source, read_catalogue, unit_names
from deploy.commands.config_file import repeat_partition
from deploy.commands.launch import config_catalogue, with_vocabulary_of
from deploy.commands.request import resolve
from deploy.commands.resume import run_partition, run_vocabulary
from deploy.commands.runs import runs_folder
from deploy.report.launch_record import remember
from server.artifacts import RunDirectory


def prepare_simulation(
    request: RunRequest, source: DataRequest, test: str, clients: int | None, catalogue: Path | None
) -> tuple[RunConfig, Sequence[AnyDataset]]:
    """Return the configuration of a simulation and each client's partition of the data.

    Raises:
        ConfigError: An option is wrong, or does not fit the run that is resumed.
        DataError: The data cannot be read or partitioned.
    """
    config = resolve(request, {"federation.min-clients": 1, "federation.wait": 1})
    data, dialect = with_test(config.task, source.data, test), source.dialect
    vocabulary = read_catalogue(config.task, catalogue or config_catalogue(request, config))
    folder = RunDirectory(runs_folder(), config.run_id)
    if request.resume:
        vocabulary = run_vocabulary(folder, config.task, vocabulary)
        data, clients = run_partition(folder, data, clients)
    else:
        data, clients = repeat_partition(request.config, "simulate", data, clients)
    parts = partition_source(config.task, data, vocabulary, clients or 0, dialect)
    if not request.resume:
        config = with_vocabulary_of(parts, config, data, (LOCAL / "simulate" / config.run_id).resolve())
        remember(folder.path, "simulate", data, clients or 0, unit_names(config.task, parts))
    console.print(f"run [bold]{config.run_id}[/]: {count(len(parts), 'client')} in this process", soft_wrap=True)
    return config, parts
