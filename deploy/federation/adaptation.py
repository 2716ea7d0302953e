"""`fedloom join --adapt`: a client that takes the model of a finished run."""

import shlex

import torch
from rich.table import Table

from client.app import open_session
from client.inference.stored_models import adapt
from client.privacy.simulation import in_memory
from client.session import Session
from client.settings import ClientSettings
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, RefusedError
from common.tasks.registry import read_vocabulary
from common.wire.messages import Metrics
from deploy.cli.output import note, out, print_object
from deploy.federation.runs import find_run, stored_options
from deploy.pages.view import format_value, in_order
from deploy.serving.models import load_checkpoint
from server.record.folder import RunDirectory

FEDERATED = ("privacy.", "federation.")
"""Options about uploads and other clients; an adaptation sends nothing."""


def task_of(run: str, task: str) -> str:
    """Return the task of the finished run, and so of the data.

    Raises:
        ConfigError: The run does not exist, or it is of another task than the one named.
    """
    folder = find_run(run)
    run_task = parse(stored_options(folder)).task
    if task and parse({"task": task}).task != run_task:
        raise ConfigError(f"run '{folder.path.name}' is of task {run_task}; remove --task {task}, or adapt another run")
    return run_task


def adapt_to(run: str, settings: ClientSettings, *, json: bool = False) -> None:
    """Adapt the model to the client's data, store it in the client's state and print its metrics.

    Raises:
        ConfigError: The run does not exist, or the data hold no records for evaluation.
        DataError: The data do not fit the run's vocabulary.
        RefusedError: The owner's policy forbids such a run.
    """
    torch.set_num_threads(1)
    folder = find_run(run)
    config, model = _config(folder), load_checkpoint(folder).model
    vocabulary = read_vocabulary(config.task, folder.catalogue())
    alone = f"fedloom simulate --task {config.task} --data {shlex.quote(settings.data)}"
    remedy = (
        f"rename what is not named as in {folder.path / 'catalogue.json'}, or train on these data alone with {alone}"
    )
    try:
        client = open_session(settings)
        releaser = in_memory(client.policy.for_local_use())  # nothing is sent, so no noise is needed
        session = Session(client.client, client.build_learner, client.store, releaser, device=client.device)
        metrics = adapt(session, config, vocabulary, model)
    except RefusedError as error:
        if isinstance(error.__cause__, DataError):  # hidden from servers; here the owner asks
            raise DataError(f"{str(error.__cause__).partition(';')[0]}; {remedy}") from None
        raise
    if not metrics:
        raise ConfigError(f"run '{folder.path.name}' is adapted, but finds no test records in these data; {remedy}")
    _print(folder.path.name, settings.name, metrics, json=json)
    note(f"stored in {settings.state_dir}; nothing was sent")


def _print(run: str, client: str, metrics: Metrics, *, json: bool) -> None:
    if json:
        print_object({"run": run, "client": client, "metrics": metrics})
        return
    table = Table("metric", "here", title=f"{client}, by run {run}, adapted")
    for metric in in_order(metrics):
        table.add_row(metric.label, format_value(metric, metrics[metric.key]))
    out.print(table)


def _config(folder: RunDirectory) -> RunConfig:
    stored = {key: value for key, value in stored_options(folder).items() if not key.startswith(FEDERATED)}
    return parse({**stored, "run-id": folder.path.name, "resume": False})
