"""`join --adapt`: a newcomer to a federation that is over."""

from typing import TYPE_CHECKING

from rich.table import Table

from client.settings import ClientSettings
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, RefusedError
from common.tasks.registry import read_vocabulary
from deploy.cli import options as o
from deploy.commands.runs import config_of, run_of
from deploy.report.metric_table import format_value, in_order
from server.artifacts import RunDirectory

if TYPE_CHECKING:
    from client.session import Session

NEWCOMER = "newcomer"
"""Name of a client that adapts a model and was given none: below it state is kept by data, so two of them do not meet."""

FEDERATED = ("privacy.", "federation.")
"""Options that speak of what leaves clients; here nothing does."""


def task_of(run: str, task: str) -> str:
    """What the finished run is of, which is what the data are of.

    Raises:
        ConfigError: There is no such run, or it is of another task than the one named.
    """
    folder = run_of(run)
    own = config_of(folder).task
    if task and parse({"task": task}).task != own:
        raise ConfigError(f"run '{folder.path.name}' is of task {own}: leave --task {task} out, or adapt another run")
    return own


def adapt_to(run: str, settings: ClientSettings, *, json: bool = False) -> None:
    """Adapt the finished run's model to the client's data, keep it in its state, and show what it is worth on them.

    Raises:
        ConfigError: There is no such run, or nothing to measure it on.
        DataError: The data do not fit the run's vocabulary.
        RefusedError: The owner's policy forbids such a run.
    """
    from client.app import open_session
    from client.training.adaptation import adapt

    folder = run_of(run)
    config = _config(folder)
    model, _ = folder.load_model()
    try:
        found = adapt(_at_home(open_session(settings)), config, read_vocabulary(config.task, folder.catalogue()), model)
    except RefusedError as error:
        if isinstance(error.__cause__, DataError):  # which a server would not be told; here the owner asks
            raise error.__cause__ from None
        raise
    if not found:
        raise ConfigError(
            f"run '{folder.path.name}' is adapted, but nothing in these data is held out to measure it on"
        )
    table = Table("metric", "here", title=f"{settings.name}, by run {folder.path.name}, adapted")
    for measure in in_order(found):
        table.add_row(measure.label, format_value(measure, found[measure.key]))
    if json:
        o.print_object({"run": folder.path.name, "client": settings.name, "metrics": found})
    else:
        o.out.print(table)
    o.console.print(f"kept in {settings.state_dir}; nothing was sent", soft_wrap=True)


def _at_home(session: "Session") -> "Session":
    """Return the client with a policy for local use: nothing is sent, so no noise is needed."""
    from client.privacy.in_memory import in_memory
    from client.session import Session

    return Session(session.client, session.build_learner, session.store, in_memory(session.policy.at_home()))


def _config(folder: RunDirectory) -> RunConfig:
    kept = {key: value for key, value in o.flat(folder.config()).items() if not key.startswith(FEDERATED)}
    kept |= {key: False for key in kept if key.endswith(".count-offset")}  # it takes sums, and adds none
    return parse({**kept, "run-id": folder.path.name, "resume": False})
