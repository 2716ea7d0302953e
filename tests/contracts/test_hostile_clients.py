"""Clients whose replies are well formed and within the bound on norms, and harm: named, bounded, or voted down."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from client.data.read import partition, read_all
from common.arrays import Arrays
from common.config.parse import parse
from common.errors import WireError
from common.tasks.closed_form import Entries
from common.wire.messages import TRAIN
from deploy.simulation.clients import open_sessions
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.record.journal import restore
from server.round.checks import check_entries
from server.run import run
from studies.lies.adaptive import PLOTS, ColludingGrid
from studies.lies.effect_cases import ALIE, Case
from studies.lies.liars import LyingGrid, scaled, trained

CLIENTS = LIAR = 20


def refused(
    folder: Path, *, method: str, factor: float, rounds: int = 4, validation: float = 0.0
) -> list[dict[str, str]]:
    """Return who is left out in each round of a federation, of which the last client multiplies its honest update."""
    folder.mkdir(exist_ok=True)
    flat = {"task": "rules", "method": method, "run-id": "toy", "tasks.rules.validation-share": validation}
    if method != "ridge":
        flat |= {"rounds": rounds, "training.lr": 0.05, "training.local-steps": 10}
    sessions, _ = open_sessions(partition(read_all("rules", "demo:0-60"), CLIENTS))
    lie = trained(update=scaled(factor), gradient=scaled(factor))
    run(LyingGrid(sessions, LIAR, TRAIN, lie), parse(flat), folder)
    events = RunDirectory(folder, "toy").events()
    return [dict(event.refused) for event in events if isinstance(event, RoundEvent)]


def test_a_sign_flip_is_named_and_stays_away_and_its_memory_is_in_the_checkpoint(tmp_path: Path) -> None:
    found = refused(tmp_path, method="fedavg", factor=-1.0)
    named = [number for number, clients in enumerate(found) if clients]
    assert len(named) == 1
    assert found[named[0]].keys() == {f"client-{LIAR - 1}"}
    assert found[named[0]][f"client-{LIAR - 1}"].startswith("opposed to the others in")
    checkpoint = RunDirectory(tmp_path, "toy").checkpoints.load_latest()
    assert checkpoint is not None
    memory = restore(checkpoint).reply_memory
    assert memory.excluded[f"client-{LIAR - 1}"] == len(found)
    assert len(memory.alignment["update"]) == CLIENTS
    assert memory.alignment["update"][f"client-{LIAR - 1}"].mean < 0


def test_who_was_in_a_coalition_stays_aside_and_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def once(honest: Sequence[Arrays]) -> list[Arrays]:
        nonlocal calls
        calls += 1
        return [honest[0]] * len(honest) if calls == 1 else [*honest]

    monkeypatch.setitem(PLOTS, ALIE, once)
    flat = {"task": "rules", "method": "fedavg", "run-id": "toy", "rounds": 3, "training.local-steps": 10}
    sessions, _ = open_sessions(partition(read_all("rules", "demo:0-60"), CLIENTS))
    run(ColludingGrid(sessions, Case("rules", "fedavg", ALIE, 0.1), (1, 20), 3), parse(flat), tmp_path)
    rounds = [event for event in RunDirectory(tmp_path, "toy").events() if isinstance(event, RoundEvent)]
    assert [event.server["set_aside"] for event in rounds] == [2, 2, 2]
    assert not any(event.refused for event in rounds)
    checkpoint = RunDirectory(tmp_path, "toy").checkpoints.load_latest()
    assert checkpoint is not None
    assert restore(checkpoint).reply_memory.allied == ("client-0", "client-19")


def test_no_honest_client_is_named(tmp_path: Path) -> None:
    assert not any(refused(tmp_path, method="fedavg", factor=1.0))


def test_clients_vote_on_a_suspect_where_they_have_validation_data(tmp_path: Path) -> None:
    found = refused(tmp_path, method="fedavg", factor=-3.0, validation=0.5)
    assert "most clients' validation data are against its updates" in found[2][f"client-{LIAR - 1}"]
    assert [*map(len, found)] == [0, 0, 1, 0], "the votes of one round name nobody"


def test_statistics_that_no_data_have_are_left_out_and_named(tmp_path: Path) -> None:
    for number, factor in enumerate((-1.0, 9.0)):
        found = refused(tmp_path / str(number), method="ridge", factor=factor)
        assert "statistic 'ease_used'" in found[0][f"client-{LIAR - 1}"]


@pytest.mark.parametrize(("numbers", "valid"), [([0, 5], True), ([5.1], False), ([-1], False), ([np.nan], False)])
def test_entries_add_up_over_records(numbers: list[float], valid: bool) -> None:
    statistics = {"counts": np.array(numbers, np.float32)}
    try:
        check_entries(statistics, {"counts": Entries(0, 1)}, 5)
    except WireError:
        assert not valid
    else:
        assert valid


@pytest.mark.parametrize(("number", "low", "per_record"), [(-0.1, 0, True), (5.1, 0, False), (-5.1, -1, False)])
def test_sums_over_any_number_of_records_keep_their_sign_and_the_ranges_of_clients(
    number: float, low: float, per_record: bool
) -> None:
    entries = {"counts": Entries(low, 1, per_record=per_record)}
    with pytest.raises(WireError, match="statistic 'counts' has"):
        check_entries({"counts": np.array([number], np.float32)}, entries, 0, clients=5)
    check_entries({"counts": np.array([5.0, low], np.float32)}, entries, 0, clients=5)
    check_entries({"counts": np.array([1e5], np.float32)}, {"counts": Entries(low, 1)}, 0, clients=5)


@pytest.mark.parametrize("records", [5, 0])
@pytest.mark.parametrize(("total", "count", "valid"), [(-3, 3, True), (3.1, 3, False), (0, -1, False), (5e-7, 0, True)])
def test_sums_are_no_larger_than_the_number_of_their_values(
    total: float, count: float, *, valid: bool, records: int
) -> None:
    entries = {"means": Entries(-1, 1, has_counts=True)}
    statistics = {"means": np.array([[0, 2], [total, count]], np.float32)}
    with nullcontext() if valid else pytest.raises(WireError, match=r"honest data give|each of which is at most 1"):
        check_entries(statistics, entries, records, clients=2)
