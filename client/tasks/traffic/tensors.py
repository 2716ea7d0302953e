"""Tensors of a client's sensors for training, and windows that a run may share in plaintext."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from client.stacked_tensors import Tensors
from client.tasks.traffic.prepare import Sensor
from common.arrays import Floats
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.shared_windows import Sample


def join_sensors(sensors: Sequence[Sensor]) -> Tensors:
    """Concatenate the sensors; no window crosses from one sensor to the next."""
    offsets = np.cumsum([0, *(len(sensor.values) for sensor in sensors)])[:-1]
    starts = [sensor.train + offset for sensor, offset in zip(sensors, offsets, strict=True)]
    arrays: dict[str, list[NDArray[Any]]] = {
        "values": [sensor.values for sensor in sensors],
        "inputs": [sensor.inputs for sensor in sensors],
        "base": [sensor.base for sensor in sensors],
        "seen": [sensor.observed for sensor in sensors],
    }
    batch = {name: torch.from_numpy(np.concatenate(parts, dtype=np.float32)) for name, parts in arrays.items()}
    batch |= bounds_by_time(sensors, [(sensor.ranges.low, sensor.ranges.high) for sensor in sensors])
    if all(sensor.ridge.size for sensor in sensors):
        batch["ridge"] = join_ridges(sensors)
    return {**batch, "starts": torch.from_numpy(np.concatenate(starts).astype(np.int64))}


def join_ridges(sensors: Sequence[Sensor]) -> torch.Tensor:
    """Concatenate the ridge forecasts of the sensors' windows."""
    return torch.from_numpy(np.concatenate([sensor.ridge for sensor in sensors], dtype=np.float32))


def bounds_by_time(sensors: Sequence[Sensor], tables: Sequence[tuple[Floats, Floats]]) -> Tensors:
    """Return the bounds at every reading of every sensor, from its tables of bounds by row of the week."""
    low, high = zip(
        *((low[s.clock], high[s.clock]) for s, (low, high) in zip(sensors, tables, strict=True)), strict=True
    )
    bounds = {"low": low, "high": high}
    return {name: torch.from_numpy(np.concatenate(columns, dtype=np.float32)) for name, columns in bounds.items()}


def select_windows(sensors: Sequence[Sensor], batch: Tensors, options: TrafficOptions, windows: int) -> Sample:
    """Select at most `windows` training windows, evenly spaced."""
    first = batch["starts"][torch.linspace(0, len(batch["starts"]) - 1, min(windows, len(batch["starts"]))).long()]
    past, future = first[:, None] + torch.arange(-options.history, 0), first[:, None] + torch.arange(options.horizon)
    history, base, target = (batch["inputs"] - batch["base"])[past], batch["base"][future], batch["values"][future]
    base = base + batch["ridge"][first] if "ridge" in batch else base
    clock = np.concatenate([sensor.clock for sensor in sensors])[future.numpy()]
    return Sample(history.numpy(), base.numpy(), target.numpy(), clock)
