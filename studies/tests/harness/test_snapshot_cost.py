"""Figures of snapshots."""

import torch

from client.state import ClientMemory, MemoryStore
from studies.harness.snapshot_cost import measure_snapshot


def test_the_size_is_that_of_the_clients_tensors() -> None:
    stores = [MemoryStore() for _ in range(3)]
    for store in stores[:2]:
        store.save("r", ClientMemory(1, {"delta": {"w": torch.zeros(2**18)}}))
    figures = measure_snapshot(stores, "r")
    assert figures["mb_snapshot"] == 2.0
    assert min(figures["seconds_snapshot"], figures["seconds_restore"]) > 0
