"""For every test: one thread for small tensors, and Flower's identity that makes messages possible; slow ones are marked."""

import tomllib
from pathlib import Path

import pytest
import torch
from flwr.supercore.task_identity import TaskIdentity
from hypothesis import settings

from common.privacy import signal

SLOW = tomllib.loads((Path(__file__).parent / "slow.toml").read_text("utf-8"))["slow"]
"""Files and folders of slow tests, which `make quick` leaves out."""

least_signal = signal.least_signal
"""Smallest signal of training under noise, outside of tests."""

pytest.register_assert_rewrite("tests.support")  # so that a failed check there names what it found
torch.set_num_threads(1)
settings.register_profile("fedloom", deadline=None, max_examples=40, derandomize=True)  # a commit has one result
settings.register_profile("search", deadline=None, max_examples=400, derandomize=False)  # `make search`
settings.load_profile("fedloom")


def pytest_configure(config: pytest.Config) -> None:
    """PyG scripts a class on import, which this torch calls deprecated; nothing of ours does."""
    config.addinivalue_line("filterwarnings", "ignore:`torch.jit.script:DeprecationWarning")


def _is_slow(path: Path) -> bool:
    return any(path.is_relative_to(Path(__file__).parent / slow) for slow in SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave slow files unread where their tests would be left out."""
    return True if "not (slow" in config.option.markexpr and _is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow files; the longest files come first, so that no worker is left with one at the end."""
    for item in items:
        if _is_slow(item.path):
            item.add_marker("slow")
    marks = ("container", "system", "slow")
    items.sort(key=lambda item: [item.get_closest_marker(mark) is None for mark in marks])


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture(autouse=True)
def _accepted_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toy federations are smaller than any noise allows: each accepts it, as `privacy.accept-noise=true` does."""
    monkeypatch.setattr(signal, "least_signal", lambda config: 0.0)


@pytest.fixture
def refused_noise(monkeypatch: pytest.MonkeyPatch, _accepted_noise: None) -> None:
    """Refuse training that noise would drown, as outside of tests."""
    monkeypatch.setattr(signal, "least_signal", least_signal)
