"""Flower ServerApp: parse -> build -> start -> save."""

import logging
import sys
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from common.config.parse import flatten, parse
from common.config.run import RunConfig
from common.files import close_to_others
from common.system_calls import end_with
from server.record.process import record_process
from server.run import run
from server.settings import ServerSettings

OWN_PROCESS = "flwr-serverapp"
"""Program of a ServerApp with a process of its own."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train according to the run's configuration; results are written to the run's folder."""
    own = logging.getLogger("server")
    own.setLevel(logging.INFO)
    own.addHandler(logging.StreamHandler())  # a line per round; Flower streams what this process prints
    close_to_others()
    if Path(sys.argv[0]).name == OWN_PROCESS and "--parent-pid" in sys.argv:
        end_with(int(sys.argv[sys.argv.index("--parent-pid") + 1]))  # the SuperLink
    declared = flatten(RunConfig())  # Flower passes on all that pyproject.toml declares, also of other methods
    config = parse({key: value for key, value in context.run_config.items() if value != declared.get(key)})
    settings = ServerSettings()
    if settings.processes:
        record_process(settings.processes, "the ServerApp", run=config.run_id)
    run(grid, config, settings.runs, settings.nodes)
