"""Simulations continue with their clients' state, as if they had not stopped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.training import snapshot as stored_state
from common.config.run import RunConfig
from common.errors import StateError
from deploy.simulation import state as client_snapshot
from deploy.simulation.state import REMOVED, KeptState, simulate_measured
from server.record.result import Result
from server.record.rewind import REPLAYED
from tests.support.kills import killed_at
from tests.support.toys import toy_dataset

KEPT = KeptState(keep=True)


def simulated(config: RunConfig, runs: Path, together: int = 1, state: KeptState = REMOVED, **options: Any) -> Result:
    changed = config.model_copy(update=options)
    return simulate_measured(
        changed, [toy_dataset(1), toy_dataset(2), toy_dataset(3)], runs, together=together, state=state
    )[0]


def snapshot(runs: Path, number: int = 3) -> Path:
    return runs / "toy" / "clients" / str(number)


def test_snapshots_are_for_their_owner_only_and_older_ones_go(
    settings: Callable[..., RunConfig], tmp_path: Path
) -> None:
    simulated(settings("fedrule"), tmp_path, state=KEPT)
    folder = tmp_path / "toy" / "clients"
    assert [path.name for path in folder.iterdir()] == ["3"]
    files = list(folder.rglob("*"))
    assert sorted(path.name for path in files) == ["0.safetensors", "3", "documents.safetensors", "manifest.json"]
    assert not any(path.stat().st_mode & 0o077 for path in (folder, *files))


@pytest.mark.parametrize(("every", "kept"), [(0, []), (2, [2]), (None, [3])])
def test_snapshots_follow_the_rounds_that_are_asked_for(
    every: int | None, kept: list[int], settings: Callable[..., RunConfig], tmp_path: Path
) -> None:
    """The server goes back to the round of the newest one; the lines of later rounds are put aside."""
    config = settings("fedrule", rounds=4)
    through = simulated(config, tmp_path / "through")
    state = KeptState(every=every)
    with killed_at() as steps:
        simulated(config, tmp_path / "counted", state=state)
    runs = tmp_path / "killed"
    with killed_at(len(steps.names) - 1 - steps.names[::-1].index("push_messages")):
        simulated(config, runs, state=state)
    assert [int(path.name) for path in (runs / "toy" / "clients").glob("*")] == kept
    if not kept:
        with pytest.raises(StateError, match=r"clients has no snapshot; .* --forget-state"):
            simulated(config, runs, resume=True)
        return
    assert (runs / "toy" / "checkpoints" / f"round-{kept[0]:06d}.safetensors").exists()
    assert simulated(config, runs, resume=True).model_sha256 == through.model_sha256
    lines = [json.loads(line) for line in (runs / "toy" / "metrics.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines if line["event"] == "round"] == [1, 2, 3, 4]
    cut = runs / "toy" / REPLAYED
    again = [json.loads(line)["round"] for line in cut.read_text().splitlines()] if cut.exists() else []
    assert again == list(range(kept[0] + 1, 4))


def test_large_state_is_written_when_the_last_time_is_long_ago(
    settings: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_snapshot, "EVERY_ROUND_BYTES", 10)
    monkeypatch.setattr(client_snapshot, "SHARE", 1e9)
    config = settings("fedrule", rounds=5)
    with killed_at() as steps:
        through = simulated(config, tmp_path / "through")
    with killed_at(len(steps.names) - 5):
        simulated(config, tmp_path / "killed")
    assert snapshot(tmp_path / "killed", 1).exists(), "round 0 has no state, so the size is that of round 1"
    assert simulated(config, tmp_path / "killed", resume=True).model_sha256 == through.model_sha256


def test_more_rounds_need_the_state_or_leave_to_forget_it(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    config = settings("fedrule")
    longer = simulated(config, tmp_path / "through", rounds=4)
    simulated(config, tmp_path / "kept", state=KEPT)
    assert simulated(config, tmp_path / "kept", rounds=4, resume=True).model_sha256 == longer.model_sha256

    simulated(config, tmp_path / "removed")
    with pytest.raises(StateError, match=r"clients has no snapshot; start again .* --resume toy --forget-state"):
        simulated(config, tmp_path / "removed", rounds=4, resume=True)
    anew = simulated(config, tmp_path / "removed", rounds=4, resume=True, state=KeptState(forget=True))
    assert (anew.rounds_done, anew.state) == (4, "restarted after round 3")
    assert anew.model_sha256 != longer.model_sha256


def test_a_full_disk_stops_no_training(
    settings: Callable[..., RunConfig],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    through = simulated(settings("fedrule"), tmp_path / "through")
    write = stored_state.write_state

    def fail(folder: Path, state: Any) -> Any:
        files, size = write(folder, state)
        if size:
            raise OSError(28, "No space left on device")
        return files, size

    monkeypatch.setattr(stored_state, "write_state", fail)
    assert simulated(settings("fedrule"), tmp_path, state=KEPT).model_sha256 == through.model_sha256
    assert [path.name for path in (tmp_path / "toy" / "clients").iterdir()] == ["0"], "the older one stays"
    assert caplog.text.count("no snapshot of the clients' state (No space left on device); training goes on") == 1
