"""Runs of FedSTL with windows that clients send."""

from pathlib import Path

from client.owner.policy import Policy
from common.config.run import RunConfig
from common.options import Scalar
from server.run import run
from tests.support.sensors import APART, Listening, sensor, session

OPEN = Policy(allow_shared_sample=True, share_metrics="always")

SHARED: dict[str, Scalar] = {**APART, "cluster_data": "shared_sample", "rounds": 1, "sample_windows": 6}


def federation(config: RunConfig, folder: Path, policy: Policy = OPEN, count: int = 3) -> Listening:
    grid = Listening({k + 1: session(f"client-{k}", (sensor(k),), policy=policy) for k in range(count)})
    run(grid, config, folder)
    return grid
