"""Federations whose local steps gather rows of a table: the same training, and updates that name these rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.data.dataset import AnyDataset
from client.tasks.sessions.data.generator import demo_visitors
from client.tasks.sessions.data.visitors import Visits
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import demo_items
from common.wire.messages import TrainReply
from common.wire.sparse_rows import ROWS
from deploy.simulation import blocks as population
from deploy.simulation.grid import simulate
from server.aggregation.replies import Reply
from server.record.folder import RunDirectory
from server.record.result import Result
from server.round.intake import SingleIntake
from tests.support.build import task_model
from tests.support.sensors import rounds_of

TABLE = "network.embedding.weight"
ALL = len(demo_items().items)
VISITORS = demo_visitors(0, 5, seed=0)


def config(**options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {"task": "sessions", "method": "fedga", "rounds": 2, "run-id": "toy"}
    flat |= {"tasks.sessions.hidden": 8, "tasks.sessions.loss": "sampled", "tasks.sessions.negatives": 16}
    return parse(flat | {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})


def trained(folder: Path, together: int = 5, **options: Scalar) -> tuple[Result, Arrays]:
    """Return the result of a run, and by how much its model changed."""
    data: AnyDataset = Visits(VISITORS, demo_items())
    result = simulate(config(**options), data, folder, together=together, noise_seed=0)
    assert result.status == "completed"
    assert all((r.answered, r.refused) == (5, {}) for r in rounds_of(folder))
    start, end = parameters(task_model(config(**options), demo_items())), RunDirectory(folder, "toy").load_model()[0]
    return result, {name: end[name] - start[name] for name in end}


def close(left: Arrays, right: Arrays) -> None:
    for name, a in left.items():
        np.testing.assert_allclose(a, right[name], atol=2e-5, err_msg=name)


ADAM: dict[str, Scalar] = {"optimizer": "adam", "moments": "reset", "lr": 0.01, "local_steps": 3}


@pytest.mark.parametrize(
    ("method", "options"),
    [("fedavg", {}), ("fedavg", ADAM), ("fedprox", {"lr": 0.5, "local_steps": 3}), ("fedrep", {}), ("fedadam", {})],
)
def test_with_all_items_it_is_the_full_run(method: str, options: dict[str, Scalar], tmp_path: Path) -> None:
    settings: dict[str, Scalar] = {f"algorithm__{method}__{key}": value for key, value in options.items()}
    settings |= {"method": method, "tasks__sessions__negatives": ALL}
    _, sampled = trained(tmp_path / "sampled", **settings)
    _, full = trained(tmp_path / "full", **settings, tasks__sessions__loss="full")
    close(sampled, full)
    assert np.abs(full[TABLE]).max() > 1e-3


def test_updates_name_own_and_drawn_rows_and_no_others_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[TrainReply] = []
    accept = SingleIntake._accept

    def seen(self: SingleIntake, at: Any, sent: TrainReply, *of: Any) -> Reply:
        replies.append(sent)
        return accept(self, at, sent, *of)

    monkeypatch.setattr(SingleIntake, "_accept", seen)
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)  # rows are summed at the server, however large the model is
    result, change = trained(tmp_path, method="fedavg", rounds=1)
    rows = [reply.update[TABLE + ROWS] for reply in replies]
    assert len(rows) == 5
    assert all(TABLE not in reply.update for reply in replies)
    own = [{0, *(int(j) + 1 for session in v.sessions for j in session)} for v in VISITORS]
    assert all(len({*ids.tolist()} - mine) >= 16 for ids, mine in zip(rows, own, strict=True))
    assert all(len(ids) <= len(mine) + 16 for ids, mine in zip(rows, own, strict=True))
    moved = np.flatnonzero(np.abs(change[TABLE]).sum(1))
    assert {*moved.tolist()} <= {*np.concatenate(rows).tolist()}
    assert 0 < len(moved) < ALL
    assert result.privacy.uncovered[0].startswith("row ids: each update names")
    full, _ = trained(tmp_path / "full", method="fedavg", rounds=1, tasks__sessions__loss="full")
    assert full.privacy.uncovered[0] == "model updates"


def test_stacked_clients_and_single_ones_train_alike(tmp_path: Path) -> None:
    _, stacked = trained(tmp_path / "stacked", together=3)
    _, single = trained(tmp_path / "single", together=1)
    close(stacked, single)


def test_counted_bytes_are_those_of_the_encoded_replies(tmp_path: Path) -> None:
    trained(tmp_path / "handed", rounds=1)
    trained(tmp_path / "encoded", rounds=1, together=1)
    [handed], [encoded] = rounds_of(tmp_path / "handed"), rounds_of(tmp_path / "encoded")
    assert handed.bytes_up == encoded.bytes_up


def test_under_noise_all_rows_are_sent(tmp_path: Path) -> None:
    result, change = trained(tmp_path, privacy__unit="client", privacy__epsilon=50.0)
    assert (np.abs(change[TABLE][1:]).sum(1) > 0).all()
    assert not any(text.startswith("row ids") for text in result.privacy.uncovered)


def test_under_secure_sums_all_rows_are_summed(tmp_path: Path) -> None:
    summed, change = trained(tmp_path / "summed", privacy__trust="helpers")
    assert not any(text.startswith("row ids") for text in summed.privacy.uncovered)
    _, plain = trained(tmp_path / "plain")
    for name in change:
        np.testing.assert_allclose(change[name], plain[name], atol=2e-3, err_msg=name)


def test_a_client_that_spoils_the_model_is_found_by_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = SingleIntake._accept

    def spoil(self: SingleIntake, at: Any, sent: TrainReply, *of: Any) -> Reply:
        accepted = accept(self, at, sent, *of)
        if accepted.client != "client-2" or sent.round < 2:
            return accepted
        far = {n: a if n.endswith(ROWS) else a + 1000 for n, a in sent.update.items()}
        return replace(accepted, train=replace(sent, update=far))

    monkeypatch.setattr(SingleIntake, "_accept", spoil)
    options = config(method="fedavg", federation__norm_bound=0.0)
    simulate(options, Visits(VISITORS, demo_items()), tmp_path, together=5, noise_seed=0)
    first, second = rounds_of(tmp_path)
    assert first.refused == {}
    assert [*second.refused] == ["client-2"]
    assert second.metrics["loss"] < 2 * first.metrics["loss"]


def test_a_run_chooses_by_the_number_of_items_and_keeps_its_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionsOptions, "gathered_items", ALL)
    chosen, _ = trained(tmp_path / "auto", method="fedavg", tasks__sessions__loss="auto")
    given, _ = trained(tmp_path / "sampled", method="fedavg")
    assert RunDirectory(tmp_path / "auto", "toy").config()["tasks.sessions.loss"] == "sampled"
    assert (chosen.model_sha256, chosen.privacy) == (given.model_sha256, given.privacy)
    monkeypatch.setattr(SessionsOptions, "gathered_items", ALL + 1)  # as by another version
    options: dict[str, Scalar] = {"method": "fedavg", "rounds": 3, "resume": True}
    resumed, _ = trained(tmp_path / "auto", **options, tasks__sessions__loss="auto")
    assert resumed.privacy.uncovered[0].startswith("row ids: each update names")
    few, _ = trained(tmp_path / "few", method="fedavg", tasks__sessions__loss="auto")
    assert few.privacy.uncovered[0] == "model updates"


@pytest.mark.parametrize("encoding", ["float16", "int8"])
def test_gathered_rows_may_be_rounded(encoding: str, tmp_path: Path) -> None:
    _, exact = trained(tmp_path / "exact", method="fedavg", rounds=1)
    _, rounded = trained(tmp_path / "rounded", method="fedavg", rounds=1, federation__encoding=encoding)
    assert np.abs(rounded[TABLE] - exact[TABLE]).max() < 0.01 * np.abs(exact[TABLE]).max()
    up = [rounds_of(tmp_path / name)[0].bytes_up for name in ("rounded", "exact")]
    assert up[0] < 0.75 * up[1]
