"""Simulation that continues with its clients' state after it was interrupted."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from client.data.dataset import AnyDataset
from client.training.comparison import MEASURED, Measured, from_document
from common.config.run import RunConfig
from deploy.client_snapshot import REMOVED, ClientSnapshots, KeptState, layout_of
from deploy.simulated_helper import open_desks, reopen_sums
from deploy.simulated_session import open_sessions
from deploy.simulation import InProcessGrid
from server.artifacts import RunDirectory
from server.result import Result
from server.run import run
from server.secure.store import SUMS, SumStore

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
    workers: int = 1,
) -> tuple[Result, dict[str, Measured]]:
    """Train as `simulate_clients` does, with the clients' state in the run's folder.

    Args:
        config: Configuration of the run.
        parts: Each client's data, all read under the run's vocabulary.
        runs: Folder of run folders.
        together: Number of clients that train stacked; 0 chooses.
        noise_seed: Root seed of reproducible DP noise, which gives no protection. None samples fresh noise.
        state: Treatment of the clients' state.
        workers: Number of processes in which a large population trains; the result does not depend on it.

    Returns:
        Result, and each client's measurement of the finished model.

    Raises:
        StateError: The clients' state of the resumed run is missing.
    """
    sessions, stores = open_sessions(parts, noise_seed)
    folder = RunDirectory(runs, config.run_id)
    snapshots = ClientSnapshots(
        folder, stores, layout_of([[u.name for u in part.units] for part in parts]), state.every
    )
    note = _prepare(snapshots, folder, config, state)
    helpers, on_disk = folder.path / HELPERS, folder.path if state.on_disk else None
    with (
        open_desks(config, noise_seed, helpers) as desks,
        InProcessGrid(sessions, together, snapshots.ledgers.commit, desks, snapshots.lengths, workers, on_disk) as grid,
    ):
        try:
            result = replace(run(grid, config, runs, on_round=snapshots.before_round), state=note)
        except KeyboardInterrupt:
            snapshots.interrupt()
            raise
    snapshots.conclude(keep=state.keep)
    if not state.keep:
        shutil.rmtree(helpers, ignore_errors=True)
    return result, {s.client: from_document(s.store.read(config.run_id, MEASURED)) for s in sessions.values()}


def _prepare(snapshots: ClientSnapshots, folder: RunDirectory, config: RunConfig, state: KeptState) -> str:
    """Restore or forget the clients' state of a resumed run; return what its result says about that."""
    newest = folder.checkpoints.load_latest() if config.resume else None
    if newest is None:
        return ""
    if not state.forget:
        done = snapshots.restore()
        after = done or -1  # the counts of round 0 precede the first snapshot
        SumStore(folder.path / SUMS, config.run_id).clear_after(after)
        reopen_sums(folder.path / HELPERS, after)
        return ""
    kept = snapshots.forget()
    return f"restarted after round {newest.round}" + ("" if kept else ", with new privacy ledgers")
