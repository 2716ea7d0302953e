"""Training in this process, for `fedloom simulate` and its Python counterpart."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from client.device import choose_device, describe_device, require_processor
from client.training.comparison import Measured
from common.config.parse import is_comparable
from common.errors import ConfigError
from deploy.cli.options import ClusterRequest, RunRequest, TrainingData
from deploy.cli.output import console
from deploy.data.sources import RunSource
from deploy.federation.compare import with_alone
from deploy.federation.local_clients import prepare_simulation
from deploy.federation.runs import removed_unless_started, runs_folder
from deploy.federation.watch import watch_here
from deploy.pages.tracker import tracked
from deploy.simulation.cluster import Cluster
from deploy.simulation.grid import SimulationEngine
from deploy.simulation.state import KeptState, simulate_measured
from deploy.simulation.workers import choose_workers
from server.record.events import Event
from server.record.folder import RunDirectory
from server.record.result import Result


@dataclass(frozen=True, kw_only=True)
class Here(ClusterRequest):
    """Options of training in one process, as `fedloom simulate` has them."""

    test: str = ""
    clients: int | None = None
    catalogue: Path | None = None
    together: int = 0
    workers: int = 0
    alone: bool = True
    forget_state: bool = False
    keep_state: bool = False
    snapshot_every: int | None = None
    state_on_disk: bool = False
    device: str = "cpu"


def check_cluster(cluster: ClusterRequest, device: str, *, on_disk: bool) -> None:
    """Check the options of a cluster.

    Raises:
        ConfigError: The engine is unknown, or an option contradicts it.
    """
    if cluster.engine not in ("processes", "ray"):
        raise ConfigError(f"--engine {cluster.engine}: unknown; use processes or ray")
    if cluster.engine == "processes" and (cluster.address or cluster.gpus):
        raise ConfigError("--address and --gpus belong to --engine ray")
    if cluster.engine == "ray" and (on_disk or device != "cpu"):
        raise ConfigError(
            "--engine ray holds state in the memory of actors, on --gpus; remove --state-on-disk, or --device"
        )


@contextmanager
def open_engine(cluster: ClusterRequest, origin: RunSource) -> Iterator[tuple[SimulationEngine | None, int]]:
    """Return the engine, and its number of processors; None and 0 for processes here.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers.
    """
    if cluster.engine == "processes":
        yield None, 0
        return
    ray = Cluster(origin, cluster.address, cluster.gpus)
    try:
        yield ray, ray.processors
    finally:
        ray.close()


def train_here(
    request: RunRequest, source: TrainingData, how: Here, on_event: Callable[[Event], object] | None = None
) -> Result:
    """Train in this process, show each round, and write result and report.

    `on_event` receives each event, in another thread.

    Raises:
        ConfigError: An option is unknown, mistyped or contradicts another, or this machine has no such device.
        DataError: The data cannot be read.
    """
    if how.forget_state and not request.resume:
        raise ConfigError("--forget-state belongs to --resume")
    device = choose_device(how.device)
    if how.workers > 1:
        require_processor(device)
    check_cluster(how, device, on_disk=how.state_on_disk)
    config, partitions, origin = prepare_simulation(request, source, how.test, how.clients, how.catalogue)
    runs = runs_folder()
    state = KeptState(how.forget_state, how.keep_state, how.snapshot_every, how.state_on_disk)
    measured_here: dict[str, Measured] = {}

    def work() -> Result:
        with open_engine(how, origin) as (engine, processors):
            workers = how.workers or processors or (choose_workers() if device == "cpu" else 1)
            result, measured = simulate_measured(
                config,
                partitions,
                runs,
                together=how.together,
                state=state,
                workers=workers,
                device=device,
                engine=engine,
            )
        measured_here.update(measured)
        return result

    def compare(result: Result) -> Result:
        wanted, solves = how.alone and is_comparable(config), config.capabilities.closed_form
        result = replace(result, device=describe_device(device, solves=solves))
        return with_alone(result, config, partitions, measured_here, device) if wanted else result

    with removed_unless_started(config.run_id), tracked(config.run_id, request.track):
        return watch_here(work, RunDirectory(runs, config.run_id), console, on_event or (lambda event: None), compare)
