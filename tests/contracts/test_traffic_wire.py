"""No message contains a reading of a sensor, in any unit or form; bounds of properties are stated."""

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message
from flwr.common.serde import message_to_proto

from client.state import MemoryStore
from client.tasks.traffic.data.series import Series, split_series
from common.options import Scalar
from common.wire.codec import encode
from common.wire.messages import AssignReply, TrainReply
from server.run import run
from tests.support.sensors import Listening, heard, road_config, road_grid, sensor
from tests.support.toys import instruction

SENSORS = (0, 1, 2)
METHODS = ("fedavg", "fedprox", "fedrep", "ditto", "local", "ifca", "fedstl")


def messages(method: str, folder: Path, **options: Scalar) -> tuple[Listening, bytes]:
    """Return all messages of a run of three sensors, and their bytes."""
    config = road_config(method, **options)
    grid = road_grid([MemoryStore() for _ in SENSORS], Listening)
    run(grid, config, folder)
    assert len(grid.asked) == len(grid.answered) > 10
    assert not any(message.has_error() for message in grid.answered)
    return grid, as_bytes([*grid.asked, *grid.answered])


def as_bytes(sent: list[Message]) -> bytes:
    return b"".join(message_to_proto(message).SerializeToString() for message in sent)


def scaled(series: Series) -> np.ndarray:
    return split_series(series, road_config().task_options).scaler.scale(series.values)[:, 0]


def numbers_in(haystack: bytes, readings: np.ndarray) -> int:
    """Count readings, as float64, or consecutive pairs, as float32, in the bytes."""
    needles = [readings.astype(kind).view(np.uint64) for kind in ("<f8", ">f8")]
    pairs = np.stack([readings[:-1], readings[1:]], axis=1)
    needles += [pairs.astype(kind).reshape(-1).view(np.uint64) for kind in ("<f4", ">f4")]
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(haystack, np.uint8), 8)
    words = np.ascontiguousarray(windows).view(np.uint64)[:, 0]
    return int(np.isin(np.concatenate(needles), words).sum())


def texts_in(haystack: bytes, readings: np.ndarray) -> list[str]:
    texts = {text for value in readings.tolist() for text in (f"{value:.2f}", f"{value:.4f}", repr(value))}
    return [text for text in sorted(texts) if text.encode() in haystack]


def alone_in(grid: Listening, readings: np.ndarray) -> int:
    """Count single readings in the clients' updates and property bounds."""
    sent = [a for _, reply in heard(grid, TrainReply) for a in reply.update.values() if a.dtype == np.float32]
    sent += [a for _, reply in heard(grid, AssignReply) for name, a in reply.property.items() if name != "days"]
    return int(np.isin(readings.astype(np.float32), np.concatenate([np.ravel(a) for a in sent])).sum()) if sent else 0


@pytest.mark.parametrize(
    ("method", "options"),
    [(method, {"model": model}) for method in METHODS for model in ("default", "paper")],
)
def test_no_message_contains_a_reading(method: str, options: dict[str, Scalar], tmp_path: Path) -> None:
    grid, haystack = messages(method, tmp_path, **options)
    for number in SENSORS:
        series = sensor(number)
        raw, standard = series.values[:, 0], scaled(series)
        assert texts_in(haystack, raw) == []
        assert numbers_in(haystack, raw) == 0
        assert numbers_in(haystack, standard) == 0
        assert alone_in(grid, raw) == 0
        assert series.name.encode() not in haystack
    assert b"2024-01-01" not in haystack


def test_calibrated_bounds_are_not_readings(tmp_path: Path) -> None:
    grid, _ = messages("fedstl", tmp_path)
    assert len(heard(grid, AssignReply)) >= 3
    for number in SENSORS:
        bounds = np.concatenate([r.property[end] for _, r in heard(grid, AssignReply) for end in ("low", "high")])
        assert not np.isin(scaled(sensor(number)).astype(np.float32), bounds).any()


@pytest.mark.parametrize("kind", ["weekday", "paper"])
def test_plain_bounds_are_extreme_readings_standardized_by_the_client(kind: str, tmp_path: Path) -> None:
    """§3.3's tight bounds are readings by definition; these are sent standardized, all others are not sent."""
    grid, haystack = messages("fedstl", tmp_path, tasks__traffic__property=kind)
    for number in SENSORS:
        property = dict(heard(grid, AssignReply))[f"client-{number}"].property
        assert property.keys() == {"low", "high", "days"}
        low, high = property["low"], property["high"]
        matches = np.isin(scaled(sensor(number)).astype(np.float32), np.concatenate([low, high])).sum()
        assert 0 < matches <= len(np.unique(low)) + len(np.unique(high))
        assert numbers_in(haystack, sensor(number).values[:, 0]) == 0
        assert alone_in(grid, sensor(number).values[:, 0]) == 0


def test_the_search_finds_readings() -> None:
    readings = sensor(0).values[:, 0]
    for a in (readings[7:8], readings[7:9].astype(np.float32)):
        sent = Message(encode(TrainReply(1, {"w": a}, {}, 0.0, 1, 1)), reply_to=instruction(5))
        assert numbers_in(as_bytes([sent]), readings) == 1
        assert numbers_in(b"abc" + as_bytes([sent]), sensor(1).values[:, 0]) == 0
    message = Message(encode(TrainReply(1, {}, {}, float(readings[3]), 1, 1)), reply_to=instruction(5))
    assert numbers_in(as_bytes([message]), readings) == 1
    assert texts_in(f"read {readings[9]:.2f} vehicles".encode(), readings) == [f"{readings[9]:.2f}"]
