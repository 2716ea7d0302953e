"""Losses, metrics and times of a run of `fedloom simulate`, stored beside other results.

`python -m studies speed kept_run runs/ID --under paper_population` adds them to docs/results/population.json. Of a run that
was stopped, the last measured round stands for the end.
"""

import statistics
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from studies.speed import timing


def describe(folder: Path) -> dict[str, Any]:
    """Return the table of a run.

    Raises:
        ConfigError: The folder holds no run with a round, or a failed one.
    """
    run = RunDirectory(folder.parent, folder.name)
    config, result = run.config(), run.result()
    rounds = [event for event in run.events() if isinstance(event, RoundEvent)]
    if not rounds or (result and result.status != "completed"):
        raise ConfigError(f"run '{folder}' has no round or failed; resume it")
    measured = {event.round: event.metrics for event in rounds if event.metrics}
    return {
        "method": config["method"],
        "task": config["task"],
        "status": result.status if result else "stopped",
        "rounds": len(rounds),
        "clients": rounds[-1].asked,
        "answered": min(event.answered for event in rounds),
        "seconds_per_round": statistics.median(event.seconds for event in rounds),
        "losses": [event.loss for event in rounds],
        "measured": measured,
        "metrics": result.metrics if result else measured[max(measured)] if measured else {},
        "model_sha256": result.model_sha256 if result else "",
    }


def main() -> None:
    """Store the table of the run."""
    parser = timing.options(__doc__, "population")
    parser.add_argument("folder", type=Path, help="folder of the run")
    parser.add_argument("--under", required=True, metavar="KEY", help="key of the file to write under")
    options = parser.parse_args()
    timing.write(options.out, describe(options.folder), "torch", "flwr", under=options.under)
    print(options.out)
