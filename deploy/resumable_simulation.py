"""Simulation that continues with its clients' state after it was interrupted."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from client.data.dataset import AnyDataset
from client.training.comparison import MEASURED, Measured, from_document
from common.config.run import RunConfig
from deploy.client_snapshot import REMOVED, ClientSnapshot, KeptState
from deploy.simulated_helper import open_desks
from deploy.simulated_session import open_sessions
from deploy.simulation import InProcessGrid
from server.artifacts import RunDirectory
from server.result import Result
from server.run import run

HELPERS = "helpers"
"""Folder with the books of simulated helpers, in that of the run."""


def simulate_measured(
    config: RunConfig,
    parts: Sequence[AnyDataset],
    runs: Path,
    *,
    together: int = 0,
    noise_seed: int | None = None,
    state: KeptState = REMOVED,
) -> tuple[Result, dict[str, Measured]]:
    """Train as `simulate_clients` does, with the clients' state in the run's folder.

    Args:
        config: Configuration of the run.
        parts: Each client's data, all read under the run's vocabulary.
        runs: Folder of run folders.
        together: Number of clients that train stacked; 0 chooses.
        noise_seed: Root seed of reproducible DP noise, which gives no protection. None samples fresh noise.
        state: Treatment of the clients' state.

    Returns:
        Result, and each client's measurement of the finished model.

    Raises:
        StateError: The clients' state of the resumed run is missing.
    """
    sessions, stores = open_sessions(parts, noise_seed)
    folder = RunDirectory(runs, config.run_id)
    snapshot = ClientSnapshot(folder.path, stores)
    checkpoint = folder.checkpoints.load_latest() if config.resume else None
    if checkpoint and not state.forget:
        snapshot.restore(checkpoint.round, has_noise=config.privacy.unit != "none")
    helpers = folder.path / HELPERS
    with open_desks(config, noise_seed, helpers) as desks:
        result = run(InProcessGrid(sessions, together, snapshot.write, desks), config, runs)
    if checkpoint and state.forget:
        result = replace(result, state=f"restarted after round {checkpoint.round}")
    if not state.keep:
        snapshot.remove()
        shutil.rmtree(helpers, ignore_errors=True)
    return result, {s.client: from_document(s.store.read(config.run_id, MEASURED)) for s in sessions.values()}
