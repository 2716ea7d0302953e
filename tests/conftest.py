"""For every test: one thread for small tensors, and Flower's identity that makes messages possible; slow ones are marked."""

import tomllib
from pathlib import Path

import pytest
import torch
from flwr.supercore.task_identity import TaskIdentity
from hypothesis import settings

SLOW = tomllib.loads((Path(__file__).parent / "slow.toml").read_text("utf-8"))["slow"]
"""Files and folders of slow tests, which `make quick` leaves out."""

pytest.register_assert_rewrite("tests.support")  # so that a failed check there names what it found
torch.set_num_threads(1)
settings.register_profile("fedloom", deadline=None, max_examples=40)
settings.load_profile("fedloom")


def pytest_configure(config: pytest.Config) -> None:
    """PyG scripts a class on import, which this torch calls deprecated; nothing of ours does."""
    config.addinivalue_line("filterwarnings", "ignore:`torch.jit.script:DeprecationWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow files."""
    for item in items:
        place = item.path.relative_to(Path(__file__).parent)
        if any(place.is_relative_to(path) for path in SLOW):
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
