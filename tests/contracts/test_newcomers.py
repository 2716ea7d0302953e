"""A client with a week of data in a run of others with more: whom the pooled properties reach, and where they are kept."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from client.session import MODEL
from client.state import MemoryStore
from common.tasks.traffic.ranges import POOLED
from common.wire.messages import CLUSTER, AssignReply, EvaluateRequest, TrainRequest
from server.aggregation.pooled_properties import pool_neighbors
from server.artifacts import RunDirectory
from server.run import run
from tests.support.sensors import Listening, heard, road_config, sensor, session

NEWCOMER = 6


def federation(veterans: int = NEWCOMER) -> tuple[Listening, dict[int, MemoryStore]]:
    """Client 6 has a week of data; the others, three."""
    days = {k: 7 if k == NEWCOMER else 22 for k in (*range(veterans), NEWCOMER)}
    kept = {k: MemoryStore() for k in days}
    return Listening({k + 1: session(f"client-{k}", (sensor(k, d),), kept[k]) for k, d in days.items()}), kept


def test_pooled_properties_reach_the_newcomer_and_nobody_else(tmp_path: Path) -> None:
    grid, kept = federation()
    run(grid, road_config("fedstl", clusters=2, rounds=2), tmp_path)
    told = {name: reply.property for name, reply in heard(grid, AssignReply)}
    assert {name: int(p["days"][0]) for name, p in told.items() if int(p["days"][0]) < 14} == {f"client-{NEWCOMER}": 5}
    others = {name: p for name, p in told.items() if name != f"client-{NEWCOMER}"}
    expected = pool_neighbors({n: p["low"] for n, p in others.items()}, {n: p["high"] for n, p in others.items()})

    asked: list[tuple[str, TrainRequest | EvaluateRequest]] = [
        *heard(grid, TrainRequest),
        *heard(grid, EvaluateRequest),
    ]
    for name, request in asked:
        alone = name == f"client-{NEWCOMER}" and not (isinstance(request, TrainRequest) and request.phase == CLUSTER)
        assert (set(request.statics) == set(POOLED)) == alone
        for key, table in request.statics.items():
            np.testing.assert_array_equal(table, expected[key])
    assert set(load(kept[NEWCOMER].read("toy", MODEL))) >= set(POOLED)
    assert not set(load(kept[0].read("toy", MODEL))) & set(POOLED)
    assert set(RunDirectory(tmp_path, "toy").load_model()[0]) >= set(POOLED)


@pytest.mark.parametrize(("veterans", "options"), [(4, {}), (6, {"tasks__traffic__newcomer_days": 0})])
def test_where_groups_would_be_small_or_nobody_wants_them_there_are_none(
    veterans: int, options: dict[str, int], tmp_path: Path
) -> None:
    grid, _ = federation(veterans)
    run(grid, road_config("fedstl", clusters=1, rounds=1, **options), tmp_path)
    assert not any(request.statics for _, request in heard(grid, EvaluateRequest))
