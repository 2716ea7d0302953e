"""Flower ServerApp: parse -> build -> start -> save."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from common.config.parse import flatten, parse
from common.config.run import RunConfig
from common.files import close_to_others
from common.options import Scalar
from common.system_calls import end_with
from server.record.process import record_process
from server.run import run
from server.settings import ServerSettings

OWN_PROCESS = "flwr-serverapp"
"""Program of a ServerApp with a process of its server_log."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train according to the run's configuration; results are written to the run's folder."""
    server_log = logging.getLogger("server")
    server_log.setLevel(logging.INFO)
    server_log.addHandler(logging.StreamHandler())  # a line per round; Flower streams what this process prints
    close_to_others()
    if Path(sys.argv[0]).name == OWN_PROCESS and "--parent-pid" in sys.argv:
        end_with(int(sys.argv[sys.argv.index("--parent-pid") + 1]))  # the SuperLink
    config = parse(_named(context.run_config))
    settings = ServerSettings()
    if settings.processes:
        record_process(settings.processes, "the ServerApp", run=config.run_id)
    run(grid, config, settings.runs, settings.nodes, home=settings.processes.parent if settings.processes else None)


def _named(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the options that a user of `flwr run` named; runs of fedloom, which have a run-id, name all.

    Flower passes on all that pyproject.toml declares: the defaults of the first method and of the first task.
    """
    declared = {} if "run-id" in options else flatten(RunConfig())
    return {key: value for key, value in options.items() if value != declared.get(key)}
