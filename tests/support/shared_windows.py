"""Runs of FedSTL with windows that clients send."""

from pathlib import Path

from client.policy import Policy
from common.config.run import RunConfig
from common.options import Scalar
from server.run import run
from tests.support.sensors import (
    Listening,
    sensor,
    session,
)

OPEN = Policy(allow_shared_sample=True, share_metrics="always")

SHARED: dict[str, Scalar] = {"cluster_data": "shared_sample", "rounds": 1, "model": "paper", "spread": 0.5}

SHARED |= {"tasks__traffic__property": "paper", "sample_windows": 6}


def federation(config: RunConfig, folder: Path, policy: Policy = OPEN, count: int = 3) -> Listening:
    grid = Listening({k + 1: session(f"client-{k}", (sensor(k),), policy=policy) for k in range(count)})
    run(grid, config, folder)
    return grid
