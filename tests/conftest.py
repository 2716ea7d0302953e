"""For every test: one thread for tensors too small to share, and Flower's identity that makes messages possible."""

import pytest
import torch
from flwr.supercore.task_identity import TaskIdentity
from hypothesis import settings

pytest.register_assert_rewrite("tests.support")  # so that a failed check there names what it found
torch.set_num_threads(1)
settings.register_profile("fedloom", deadline=None, max_examples=40)
settings.load_profile("fedloom")


def pytest_configure(config: pytest.Config) -> None:
    """PyG scripts a class on import, which this torch calls deprecated; nothing of ours does."""
    config.addinivalue_line("filterwarnings", "ignore:`torch.jit.script:DeprecationWarning")


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
