"""Simulations continue with their clients' state, as if they had not stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from common.config.run import RunConfig
from common.errors import StateError
from deploy import client_snapshot
from deploy.client_snapshot import FILE, REMOVED, KeptState
from deploy.resumable_simulation import simulate_measured
from server.result import Result
from tests.deploy.test_resumed_runs import PowerFailureError, interrupt
from tests.support.toys import toy_dataset

METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {},
    "fedrule": {},
    "fedadam": {"moments": "persist"},
    "ditto": {},
    "perfedavg": {},
    "pfedme": {},
}
STATEFUL = ("fedrule", "ditto", "pfedme")


def simulated(config: RunConfig, runs: Path, together: int = 1, state: KeptState = REMOVED, **options: Any) -> Result:
    changed = config.model_copy(update=options)
    return simulate_measured(
        changed, [toy_dataset(1), toy_dataset(2), toy_dataset(3)], runs, together=together, state=state
    )[0]


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize(("step", "before"), [("record_training", True), ("record_evaluation", False)])
@pytest.mark.parametrize("method", METHODS)
def test_a_killed_simulation_ends_with_the_bits_of_an_unbroken_one(
    method: str,
    step: str,
    before: bool,
    together: int,
    settings: Callable[..., RunConfig],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = settings(method, **METHODS[method])
    through = simulated(config, tmp_path / "through", together)
    with monkeypatch.context() as patch:
        interrupt(patch, step, before=before)
        with pytest.raises(PowerFailureError):
            simulated(config, tmp_path / "torn", together)
    assert (tmp_path / "torn" / "toy" / FILE).stat().st_mode & 0o077 == 0
    resumed = simulated(config, tmp_path / "torn", together, resume=True)
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)
    assert (tmp_path / "torn" / "toy" / FILE).exists() == (method not in STATEFUL), "removed at the end"


def test_more_rounds_need_the_state_or_leave_to_forget_it(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    config = settings("fedrule")
    longer = simulated(config, tmp_path / "through", rounds=4)
    simulated(config, tmp_path / "kept", state=KeptState(keep=True))
    assert simulated(config, tmp_path / "kept", rounds=4, resume=True).model_sha256 == longer.model_sha256

    simulated(config, tmp_path / "removed")
    with pytest.raises(
        StateError, match=r"clients\.safetensors cannot be read .*; continue with --resume toy --forget-state"
    ):
        simulated(config, tmp_path / "removed", rounds=4, resume=True)
    anew = simulated(config, tmp_path / "removed", rounds=4, resume=True, state=KeptState(forget=True))
    assert (anew.rounds_done, anew.state, anew.model_sha256 == longer.model_sha256) == (
        4,
        "restarted after round 3",
        False,
    )


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: content[:-9], "cannot be read"),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), "is damaged"),
        (lambda content: b"", "cannot be read"),
    ],
    ids=["truncated", "altered", "empty"],
)
def test_a_damaged_state_is_refused(
    damage: Callable[[bytes], bytes], reason: str, settings: Callable[..., RunConfig], tmp_path: Path
) -> None:
    simulated(settings("fedrule"), tmp_path, state=KeptState(keep=True))
    path = tmp_path / "toy" / FILE
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StateError, match=f"{reason}.*--forget-state"):
        simulated(settings("fedrule"), tmp_path, rounds=4, resume=True)


def test_a_state_of_another_round_or_of_fewer_clients_is_refused(
    settings: Callable[..., RunConfig], tmp_path: Path
) -> None:
    simulated(settings("fedrule"), tmp_path, state=KeptState(keep=True))
    path = tmp_path / "toy" / FILE
    of_three = path.read_bytes()
    simulated(settings("fedrule"), tmp_path, rounds=5, resume=True, state=KeptState(keep=True))
    path.write_bytes(of_three)
    with pytest.raises(StateError, match="holds round 3 of 3 clients, not round 5"):
        simulated(settings("fedrule"), tmp_path, rounds=6, resume=True)


def test_large_state_is_not_stored_and_said_once(
    settings: Callable[..., RunConfig],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(client_snapshot, "MAX_BYTES", 10)
    simulated(settings("fedrule"), tmp_path, state=KeptState(keep=True))
    assert not (tmp_path / "toy" / FILE).exists()
    assert caplog.text.count("is not stored; a resumed run starts it anew") == 1


def test_noise_has_no_ledger_to_continue_with(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    config = settings("fedavg", privacy__unit="client", privacy__epsilon=8.0)
    simulated(config, tmp_path, state=KeptState(keep=True))
    with pytest.raises(StateError, match="ledgers of simulated clients ended with their process"):
        simulated(config, tmp_path, rounds=4, resume=True)
