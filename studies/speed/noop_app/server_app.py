"""A ServerApp that only times rounds: one array to every node, one array back from each."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from server.exchange.door import connect
from server.exchange.grid import PollingGrid, RoundLimits
from server.exchange.relays import HubGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Time `rounds` rounds after `warm-up` others, and write the seconds of each to `result`."""
    config = context.run_config
    limits = RoundLimits(min_replies=int(config["nodes"]), deadline=600.0, patience=60.0)
    clients = PollingGrid(HubGrid(connect(grid, 600.0)), limits)
    seconds = _rounds(clients, _wait_for_nodes(clients, int(config["nodes"])), config)
    Path(str(config["result"])).write_text(json.dumps(seconds))


def _rounds(grid: Grid, nodes: list[int], config: Mapping[str, bool | int | float | str]) -> list[float]:
    generator = np.random.default_rng(0)
    seconds = []
    for number in range(int(config["warm-up"]) + int(config["rounds"])):
        array = generator.normal(size=int(config["elements"])).astype(np.float32)
        start = time.perf_counter()
        content = RecordDict({"payload": ConfigRecord({"array": array.tobytes()})})
        replies = list(grid.send_and_receive([Message(content, node, "train", group_id=str(number)) for node in nodes]))
        seconds.append(time.perf_counter() - start)
        answered = sum(reply.has_content() for reply in replies)
        if answered != len(nodes):
            raise RuntimeError(f"round {number}: {answered} of {len(nodes)} nodes answered")
    return seconds[int(config["warm-up"]) :]


def _wait_for_nodes(grid: Grid, count: int) -> list[int]:
    while len(nodes := sorted(grid.get_node_ids())) < count:
        time.sleep(0.2)
    return nodes
