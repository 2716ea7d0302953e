"""`--resume-if-there`: one command that starts a run, and continues it after a crash."""

from dataclasses import replace

from common.errors import ConfigError
from deploy.cli.options import RunRequest
from deploy.cli.output import note
from deploy.commands.runs import runs_folder
from server.artifacts import RunDirectory
from server.events import ENDED_EARLY


def start_or_continue(request: RunRequest) -> RunRequest | None:
    """Return the request with the run to continue if it exists; None if that run is finished.

    Raises:
        ConfigError: No run is named, or the request continues one by --resume.
    """
    if not request.run_id or request.resume:
        raise ConfigError("--resume-if-there needs --run-id NAME, and no --resume")
    folder = RunDirectory(runs_folder(), request.run_id)
    if not (folder.path / "config.toml").exists():
        return request
    result = folder.result()
    rounds = request.rounds or int(folder.config()["rounds"])
    if result and (result.rounds_done >= rounds or result.reason.startswith(ENDED_EARLY)):
        note(f"run '{request.run_id}' is finished; choose another --run-id for a new run")
        return None
    return replace(request, run_id="", resume=request.run_id, config=None)
