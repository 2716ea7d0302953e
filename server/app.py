"""Flower ServerApp: parse -> build -> start -> save."""

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from common.config.flatten import flatten
from common.config.parse import parse
from common.config.run import RunConfig
from server.run import run
from server.settings import ServerSettings
from server.uploads import quick_uploads

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train according to the run's configuration; results are written to the run's folder."""
    declared = flatten(RunConfig())  # Flower passes on all that pyproject.toml declares, also of other methods
    config = parse({key: value for key, value in context.run_config.items() if value != declared.get(key)})
    with quick_uploads(min(config.federation.deadline, config.federation.upload)):
        run(grid, config, ServerSettings().runs)
