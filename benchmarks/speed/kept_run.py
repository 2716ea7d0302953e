"""Losses, metrics and times of a finished run of `fedloom simulate`, stored beside other results.

`python -m benchmarks speed kept_run runs/ID --under hundred_rounds` adds them to docs/results/population.json.
"""

import statistics
from pathlib import Path
from typing import Any

from benchmarks.speed import timing
from common.errors import ConfigError
from server.artifacts import RunDirectory
from server.events import Round


def describe(folder: Path) -> dict[str, Any]:
    """Return the table of a finished run.

    Raises:
        ConfigError: The folder holds no finished run.
    """
    run = RunDirectory(folder.parent, folder.name)
    result, rounds = run.result(), [event for event in run.events() if isinstance(event, Round)]
    if result is None or result.status != "completed":
        raise ConfigError(f"run '{folder}' is not finished; wait for its end, or resume it")
    return {
        "method": result.method,
        "task": result.task,
        "status": result.status,
        "rounds": result.rounds_done,
        "clients": rounds[-1].asked,
        "answered": min(event.answered for event in rounds),
        "seconds_per_round": statistics.median(event.seconds for event in rounds),
        "losses": [event.loss for event in rounds],
        "measured": {event.round: event.metrics for event in rounds if event.metrics},
        "metrics": result.metrics,
        "model_sha256": result.model_sha256,
    }


def main() -> None:
    """Store the table of the run."""
    parser = timing.options(__doc__, "population")
    parser.add_argument("folder", type=Path, help="folder of the run")
    parser.add_argument("--under", required=True, metavar="KEY", help="key of the file to write under")
    options = parser.parse_args()
    timing.write(options.out, describe(options.folder), "torch", "flwr", under=options.under)
    print(options.out)
