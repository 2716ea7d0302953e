"""Simulated homes that share the rows that they do not touch, from read data to the model."""

import json
from pathlib import Path

import pytest

from client.data.read import partition, read_all
from client.state import ClientMemory, MemoryStore, StackedRow
from client.training import state as cohort
from client.training.stacks import TOUCHED
from common.config.parse import parse
from common.options import Scalar
from deploy.simulation import blocks as population
from deploy.simulation.state import simulate_measured
from tests.support.kills import killed_at

HOMES, BLOCK = 34, 16
"""Two of these homes have no rule to train on, so that all blocks are full."""


def trained(folder: Path, workers: int = 1, *, resume: bool = False, **options: Scalar) -> str:
    flat = {
        "run-id": "homes",
        "rounds": 3,
        "privacy.unit": "none",
        "resume": resume,
        "tasks.rules.hidden": 8,
        **options,
    }
    parts = partition(read_all("rules", f"demo:0-{HOMES}"), 0)
    return simulate_measured(parse(flat), parts, folder, together=BLOCK, workers=workers)[0].model_sha256


def test_the_model_has_the_bits_of_whole_tables_with_any_workers_and_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    short = list[bool]()
    save = MemoryStore.save

    def noted(store: MemoryStore, run: str, memory: ClientMemory) -> None:
        short.append(isinstance(memory.groups, StackedRow) and TOUCHED in memory.groups.stacked)
        save(store, run, memory)

    monkeypatch.setattr(MemoryStore, "save", noted)
    with killed_at() as steps:
        through = trained(tmp_path / "through")
    assert len(short) == 3 * HOMES
    assert trained(tmp_path / "two", 2) == through
    with killed_at(len(steps.names) - steps.names[::-1].index("commit")):  # in the last round
        trained(tmp_path / "killed", 2)
    assert trained(tmp_path / "killed", resume=True) == through
    assert all(short)
    monkeypatch.setattr(cohort, "find_own_rows", lambda participants: None)
    assert trained(tmp_path / "whole") == through
    assert not short[-1]


def test_a_client_that_was_left_out_goes_on_by_itself_with_any_workers_and_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    options = {"rounds": 5, "federation.norm-bound": 2.0}
    memories = dict[int, ClientMemory]()
    save = MemoryStore.save

    def noted(store: MemoryStore, run: str, memory: ClientMemory) -> None:
        memories[id(store)] = memory
        save(store, run, memory)

    monkeypatch.setattr(MemoryStore, "save", noted)
    with killed_at() as steps:
        through = trained(tmp_path / "through", **options)
    rounds = [json.loads(line) for line in (tmp_path / "through" / "homes" / "metrics.jsonl").read_text().splitlines()]
    left_out = {client for event in rounds if event.get("round", 5) < 5 for client in event["refused"]}
    is_short = [isinstance(m.groups, StackedRow) and TOUCHED in m.groups.stacked for m in memories.values()]
    assert 0 < is_short.count(False) == len(left_out) < BLOCK
    assert trained(tmp_path / "two", 2, **options) == through
    with killed_at(len(steps.names) - steps.names[::-1].index("commit")):  # in the last round
        trained(tmp_path / "killed", 2, **options)
    assert trained(tmp_path / "killed", resume=True, **options) == through
