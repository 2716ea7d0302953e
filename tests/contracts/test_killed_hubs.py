"""A hub and its server that are killed between two writes end in the bits of an unbroken run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from client.hub import state as state_blocks
from common.config.run import RunConfig
from common.options import Scalar
from server.record.result import Result
from server.run import run
from tests.support.hubs import NodeGrid, on_disk, settings


class KilledError(BaseException):
    """End of the processes."""


def train(folder: Path, config: RunConfig, together: int) -> Result:
    """Run with a hub of five clients whose state is on disk."""
    return run(NodeGrid({8: on_disk(folder, together, 5).respond}), config, folder / "runs")


def killed_at(write: int, *, done: bool) -> Callable[..., None]:
    """Return a function that writes a block, but ends the process before or after the one of this number."""
    original, numbers = state_blocks.put_in_place, iter(range(1, 100))

    def dying(draft: Path, path: Path) -> None:
        number = next(numbers)
        if number < write or done:
            original(draft, path)
        if number == write:
            raise KilledError

    return dying


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize(
    ("together", "write", "options"),
    [
        (2, 4, {}),  # a hub of five in cohorts of two writes three blocks a round
        (2, 8, {}),
        (2, 5, {"federation__cohort": 0.6, "federation__min_replies": 2}),
        (1, 3, {"federation__answer": "replies"}),
    ],
)
def test_a_killed_hub_resumes_at_the_same_bits(
    done: bool, together: int, write: int, options: dict[str, Scalar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, **options)
    through = train(tmp_path / "through", config, together)
    with monkeypatch.context() as patch:
        patch.setattr(state_blocks, "put_in_place", killed_at(write, done=done))
        with pytest.raises(KilledError):
            train(tmp_path / "torn", config, together)
    resumed = train(tmp_path / "torn", config.model_copy(update={"resume": True}), together)
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)
