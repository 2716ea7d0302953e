"""A client's sensors as tensors: what training reads, and the windows that a run may take in clear."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from client.stacked_tensors import Tensors
from client.tasks.traffic.prepare import Floats, Sensor
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.shared_windows import Sample


def joined(sensors: Sequence[Sensor]) -> Tensors:
    """The sensors one after the other; a window never crosses from one into the next."""
    offsets = np.cumsum([0, *(len(sensor.values) for sensor in sensors)])[:-1]
    starts = [sensor.train + offset for sensor, offset in zip(sensors, offsets, strict=True)]
    columns: dict[str, list[NDArray[Any]]] = {
        "values": [sensor.values for sensor in sensors],
        "base": [sensor.base for sensor in sensors],
        "seen": [sensor.observed.astype(np.float32) for sensor in sensors],
    }
    whole = {name: torch.from_numpy(np.concatenate(parts).astype(np.float32)) for name, parts in columns.items()}
    whole |= by_time(sensors, [(sensor.ranges.low, sensor.ranges.high) for sensor in sensors])
    if all(sensor.line.size for sensor in sensors):
        whole["line"] = lines(sensors)
    return {**whole, "starts": torch.from_numpy(np.concatenate(starts).astype(np.int64))}


def lines(sensors: Sequence[Sensor]) -> torch.Tensor:
    """What the sensors themselves expect of each window, one after the other."""
    return torch.from_numpy(np.concatenate([sensor.line for sensor in sensors]).astype(np.float32))


def by_time(sensors: Sequence[Sensor], tables: Sequence[tuple[Floats, Floats]]) -> Tensors:
    """Bounds at every reading of every sensor, from the lower and upper ones by the clock of each."""
    low, high = zip(
        *((low[s.clock], high[s.clock]) for s, (low, high) in zip(sensors, tables, strict=True)), strict=True
    )
    columns = {"low": np.concatenate(low), "high": np.concatenate(high)}
    return {name: torch.from_numpy(column.astype(np.float32)) for name, column in columns.items()}


def handed_over(sensors: Sequence[Sensor], whole: Tensors, options: TrafficOptions, windows: int) -> Sample:
    """At most so many training windows, evenly spaced."""
    first = whole["starts"][torch.linspace(0, len(whole["starts"]) - 1, min(windows, len(whole["starts"]))).long()]
    past, coming = first[:, None] + torch.arange(-options.history, 0), first[:, None] + torch.arange(options.horizon)
    history, base, target = (whole["values"] - whole["base"])[past], whole["base"][coming], whole["values"][coming]
    base = base + whole["line"][first] if "line" in whole else base
    clock = np.concatenate([sensor.clock for sensor in sensors])[coming.numpy()]
    return Sample(history.numpy(), base.numpy(), target.numpy(), clock)
