"""Shards as Ray actors on a cluster of two nodes on this machine, against local workers.

`python -m studies speed ray_cluster --clients 2000` trains FedRule on demo homes, one client each, in a process of its own for
each row: by one and by two workers, by two actors, by two actors of which one is killed before a round, and by two of which a
node is removed. The models must be equal. Seconds are medians over the rounds but the first, which starts the shards, and
but that of the kill, which has a figure of its own.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from flwr.app import Message

from client.data.read import partition_read, read_all
from common.config.parse import parse
from common.options import Scalar
from common.wire.messages import TRAIN
from deploy.data.sources import RunSource
from deploy.simulation import blocks
from deploy.simulation.clients import open_sessions
from deploy.simulation.cluster import Cluster, TeamOfActors
from deploy.simulation.grid import InProcessGrid
from server.run import run
from studies.speed import timing

ROWS = {"one worker": 1, "two workers": 2, "two actors": 2, "an actor killed": 2, "a node removed": 2}
"""Row -> number of shards."""

BROKEN = 4
"""Round before which an actor or a node ends."""


class Timed(InProcessGrid):
    """Grid that records the seconds of each training, and ends an actor or a node in the middle."""

    def __init__(self, *arguments: Any, end: Any = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.seconds: list[float] = []
        self._end_one = end

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer messages; time those of a training."""
        messages = list(messages)
        is_training = bool(messages) and messages[0].metadata.message_type == TRAIN
        if is_training and len(self.seconds) == BROKEN - 1 and self._end_one:
            self._end_one(self.population)
        start = time.monotonic()
        found = super().push_messages(messages)
        if is_training:
            self.seconds.append(time.monotonic() - start)
        return found


def measure(row: str, clients: int, rounds: int) -> dict[str, Any]:
    """Return the figures of one row."""
    blocks.FOLDED_BYTES = 0
    source = RunSource("rules", f"demo:0-{clients}", 0, {})
    data = partition_read(source.task, source.data, read_all(source.task, source.data), 0)
    flat: dict[str, Scalar] = {
        "run-id": "ray",
        "rounds": rounds,
        "evaluate-every": 10**6,
        "federation.deadline": 3600.0,
        "privacy.unit": "none",
    }
    engine, nodes, end = None, None, None
    if ROWS[row] == 2 and row != "two workers":
        engine, nodes = _cluster(source, spare=row == "a node removed")
        end = {"an actor killed": _kill, "a node removed": lambda population: _remove(nodes)}.get(row)
    sessions, _ = open_sessions(data)
    with tempfile.TemporaryDirectory() as folder, Timed(sessions, 0, workers=ROWS[row], engine=engine, end=end) as grid:
        result = run(grid, parse(flat), Path(folder))
    seconds = [s for k, s in enumerate(grid.seconds, start=1) if k > 1 and not (end and k == BROKEN)]
    found = {
        "row": row,
        "clients": clients,
        "seconds_per_round": statistics.median(seconds),
        "seconds_first": grid.seconds[0],
    }
    return {**found, "seconds_of_repair": grid.seconds[BROKEN - 1] if end else 0.0, "model_sha256": result.model_sha256}


def _cluster(source: RunSource, *, spare: bool) -> tuple[Cluster, Any]:
    """Return the engine on two nodes, and the cluster; with a spare, the other node takes both actors."""
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 2 if spare else 1})
    nodes.add_node(num_cpus=1)
    return Cluster(source, nodes.address), nodes


def _kill(population: blocks.Population) -> None:
    """End the process of the first actor."""
    import ray

    team = population.team
    if isinstance(team, TeamOfActors):
        ray.kill(team.actors[0], no_restart=True)


def _remove(nodes: Any) -> None:
    """Remove the node that is not the head."""
    [worker] = nodes.worker_nodes
    nodes.remove_node(worker, allow_graceful=False)


def main() -> None:
    """Measure each row in a process of its own; print and write."""
    parser = timing.options(__doc__, "ray_cluster")
    parser.add_argument("--clients", type=int, default=2000, help="number of homes")
    parser.add_argument("--rounds", type=int, default=6, help="rounds")
    parser.add_argument("--inner", default="", help="measure this row in this process; print JSON")
    options = parser.parse_args()
    if options.inner:
        torch.set_num_threads(1)
        print(json.dumps(measure(options.inner, options.clients, options.rounds)))
        return
    rows = [_measure_apart(row) for row in ROWS]
    print("| shards | s a round | s, first round | s, round of the loss |\n|---|---|---|---|")
    for row in rows:
        figures = [row[name] for name in ("seconds_per_round", "seconds_first", "seconds_of_repair")]
        print(f"| {row['row']} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |")
    is_equal = len({row["model_sha256"] for row in rows}) == 1
    print(f"models are {'equal' if is_equal else 'NOT equal'}")
    timing.write(options.out, {"rows": rows, "equal": is_equal, "load": os.getloadavg()[0]}, "torch", "flwr", "ray")
    sys.exit(not is_equal)


def _measure_apart(row: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "studies", "speed", "ray_cluster", *sys.argv[1:], "--inner", row]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_raylet_start_wait_time_s": "300"}  # on a busy machine
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{"))))  # Ray prints more
