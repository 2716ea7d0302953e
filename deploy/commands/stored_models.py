"""Folders of this machine in which clients store the models of finished runs."""

from pathlib import Path

from client.inference.stored_models import StoredModel, newest_stored
from common.errors import ConfigError
from deploy.cli.options import LOCAL
from deploy.partitioning import PARTITIONS, STATE


def find_stored_model(task: str, data: str, run: str, state_dir: Path, client: str = "") -> StoredModel | None:
    """Return the newest model that a client of these data stored; None if none did.

    Looks into `state_dir` and into the state folders of federations that `fedloom up` ran here. Arguments are those of
    `newest_stored`.

    Raises:
        ConfigError: A client is named that stores no such run.
    """
    roots = [state_dir, PARTITIONS / STATE, *(LOCAL / "up").glob("*/client-*/state")]
    found = newest_stored(task, data, run, roots, client)
    if client and not found:
        of_run = f" of run '{run}'" if run else ""
        raise ConfigError(
            f"--client {client}: no such client stores a finished {task} run{of_run} in {state_dir};"
            " give its --state-dir, or remove --client"
        )
    return found
