"""Simulations continue with their clients' state, as if they had not stopped."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.session import Session
from client.training import snapshot as stored_state
from common.config.run import RunConfig
from common.errors import StateError
from deploy.simulation import blocks as population
from deploy.simulation import state as client_snapshot
from deploy.simulation.state import REMOVED, KeptState, simulate_measured
from server.record.folder import REPLAYED
from server.record.result import Result
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


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def alter(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("name", ["0.safetensors", "documents.safetensors", "manifest.json"])
@pytest.mark.parametrize("harm", [truncate, alter, link, os.unlink])
def test_a_damaged_state_is_refused_by_name(
    name: str, harm: Callable[[Path], None], settings: Callable[..., RunConfig], tmp_path: Path
) -> None:
    simulated(settings("fedrule"), tmp_path, state=KEPT, rounds=1)
    harm(snapshot(tmp_path, 1) / name)
    with pytest.raises(StateError, match=rf"clients/1/{name} .*new --run-id, or use --resume toy --forget-state"):
        simulated(settings("fedrule"), tmp_path, rounds=2, resume=True)


def test_a_linked_folder_is_refused(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    simulated(settings("fedrule"), tmp_path, state=KEPT)
    link(tmp_path / "toy" / "clients")
    with pytest.raises(StateError, match="toy/clients is no folder"):
        simulated(settings("fedrule"), tmp_path, rounds=4, resume=True)


def test_foreign_snapshots_are_refused(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    config = settings("fedrule")
    for name, options in {"one": {}, "other": {"seed": 1}, "named": {"run_id": "else"}}.items():
        simulated(config, tmp_path / name, state=KEPT, **options)
    own, place = snapshot(tmp_path / "one"), tmp_path / "kept"
    own.rename(place)
    foreign = {snapshot(tmp_path / "other"): "state of the server", tmp_path / "named/else/clients/3": "run"}
    for other, noun in foreign.items():
        other.rename(own)
        with pytest.raises(StateError, match=rf"manifest\.json is of another {noun};"):
            simulated(config, tmp_path / "one", rounds=4, resume=True)
        own.rename(other)
    place.rename(own)
    changed = config.model_copy(update={"rounds": 4, "resume": True})
    with pytest.raises(StateError, match="of another set of clients or of data"):
        simulate_measured(changed, [toy_dataset(1), toy_dataset(3), toy_dataset(3)], tmp_path / "one")
    assert simulated(config, tmp_path / "one", rounds=4, resume=True).rounds_done == 4


def test_blocks_are_judged_as_without_a_kill(
    settings: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound on a reply's length follows from the lengths of the round before the kill."""
    doubtful: list[list[int]] = []
    find = population.find_doubtful

    def noted(*arguments: Any) -> list[int]:
        doubtful.append(find(*arguments))
        return doubtful[-1]

    monkeypatch.setattr(population, "find_doubtful", noted)
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    config = settings("fedrule", federation__norm_bound=2.0)
    with killed_at() as steps:
        through = simulated(config, tmp_path / "through", 3)
    expected = [*doubtful]
    assert expected[2] != expected[1]
    doubtful.clear()
    with killed_at(len(steps.names) - steps.names[::-1].index("commit")):  # in the last round
        simulated(config, tmp_path / "killed", 3)
    assert simulated(config, tmp_path / "killed", 3, resume=True).model_sha256 == through.model_sha256
    assert doubtful == [*expected, expected[2]]


@pytest.mark.parametrize("step", ["train", "evaluate"])
def test_ctrl_c_stores_the_last_round_unless_clients_have_trained_since(
    step: str, settings: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--snapshot-every 5`, rounds 1 to 3 have no snapshot of their own."""
    config, rare = settings("fedrule"), KeptState(every=5)
    through = simulated(config, tmp_path / "through")

    def interrupted(session: Session, request: Any) -> Any:
        if request.round == 2:
            raise KeyboardInterrupt
        return work(session, request)

    name = {"train": "participant", "evaluate": "evaluate"}[step]
    work = getattr(Session, name)
    with monkeypatch.context() as patch:
        patch.setattr(Session, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            simulated(config, tmp_path, state=rare)
    assert snapshot(tmp_path, 1).exists() == (step == "train")
    assert simulated(config, tmp_path, resume=True).model_sha256 == through.model_sha256


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)])
def test_any_number_of_workers_continues_the_run_of_any_other(
    before: int, after: int, settings: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    config, data = settings("fedrule"), [toy_dataset(k) for k in (1, 2, 3, 2, 3)]

    def trained(runs: Path, workers: int, *, resume: bool = False) -> str:
        changed = config.model_copy(update={"resume": resume})
        return simulate_measured(changed, data, runs, together=2, workers=workers)[0].model_sha256

    with killed_at() as steps:
        through = trained(tmp_path / "through", 1)
    with killed_at(len(steps.names) - steps.names[::-1].index("commit")):  # in the last round
        trained(tmp_path / "killed", before)
    assert trained(tmp_path / "killed", after, resume=True) == through
