"""Cold-start client with a week of data: pooled properties are sent to it, and to no other client."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from client.session import MODEL
from client.state import MemoryStore
from common.tasks.traffic.properties import POOLED
from common.wire.messages import CLUSTER, AssignReply, EvaluateRequest, TrainRequest
from server.methods.fedstl import pool_neighbors
from server.record.folder import RunDirectory
from server.run import run
from tests.support.sensors import Listening, heard, road_config, sensor, session

NEWCOMER = 6


def federation(veterans: int = NEWCOMER) -> tuple[Listening, dict[int, MemoryStore]]:
    """Run clients with three weeks of data, and client 6 with one."""
    days = {k: 7 if k == NEWCOMER else 22 for k in (*range(veterans), NEWCOMER)}
    stores = {k: MemoryStore() for k in days}
    return Listening({k + 1: session(f"client-{k}", (sensor(k, d),), stores[k]) for k, d in days.items()}), stores


def test_pooled_properties_are_sent_to_the_cold_start_client_only(tmp_path: Path) -> None:
    grid, stores = federation()
    run(grid, road_config("fedstl", clusters=2, rounds=2), tmp_path)
    properties = {name: reply.property for name, reply in heard(grid, AssignReply)}
    assert {name: int(p["days"][0]) for name, p in properties.items() if int(p["days"][0]) < 14} == {
        f"client-{NEWCOMER}": 5
    }
    warm = {name: p for name, p in properties.items() if name != f"client-{NEWCOMER}"}
    expected = pool_neighbors({n: p["low"] for n, p in warm.items()}, {n: p["high"] for n, p in warm.items()})

    requests: list[tuple[str, TrainRequest | EvaluateRequest]] = [
        *heard(grid, TrainRequest),
        *heard(grid, EvaluateRequest),
    ]
    for name, request in requests:
        alone = name == f"client-{NEWCOMER}" and not (isinstance(request, TrainRequest) and request.phase == CLUSTER)
        assert (set(request.statics) == set(POOLED)) == alone
        for key, table in request.statics.items():
            np.testing.assert_array_equal(table, expected[key])
    assert set(load(stores[NEWCOMER].read("toy", MODEL))) >= set(POOLED)
    assert not set(load(stores[0].read("toy", MODEL))) & set(POOLED)
    assert set(RunDirectory(tmp_path, "toy").load_model()[0]) >= set(POOLED)


@pytest.mark.parametrize(("veterans", "options"), [(4, {}), (6, {"tasks__traffic__newcomer_days": 0})])
def test_there_are_no_pooled_properties_of_small_groups_or_without_cold_start_clients(
    veterans: int, options: dict[str, int], tmp_path: Path
) -> None:
    grid, _ = federation(veterans)
    run(grid, road_config("fedstl", clusters=1, rounds=1, **options), tmp_path)
    assert not any(request.statics for _, request in heard(grid, EvaluateRequest))
