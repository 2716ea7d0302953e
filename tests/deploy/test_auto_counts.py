"""Counts that runs sum by themselves, and counts with noise of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message

from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, QuorumError
from common.options import Scalar
from common.privacy.accounts import gdp_of
from common.wire.messages import COUNTS, OPEN
from server.record.folder import RunDirectory
from server.secure.parties import resolve_counts
from tests.support.sum_runs import POLICY, SumFederation, noised, summed
from tests.support.toys import CATALOGUE

KEY = "tasks.rules.count-offset"
AUTO: dict[str, Scalar] = {"tasks__rules__count-offset": "auto"}


def silent_after(opened: int) -> Callable[[Message], Message | None]:
    """Return a hook that loses all answers of helpers after so many sums."""
    answers: list[Message] = []

    def lose(message: Message) -> Message | None:
        if message.metadata.message_type == OPEN:
            answers.append(message)
        return None if len(answers) > 2 * opened else message

    return lose


def stored(folder: Path) -> RunDirectory:
    return RunDirectory(folder, "toy")


def test_a_run_with_helpers_starts_from_counts_by_itself(tmp_path: Path) -> None:
    results = [
        SumFederation(tmp_path / name).run(summed(**{"tasks__rules__count-offset": value}))
        for name, value in (("auto", "auto"), ("explicit", True), ("off", False))
    ]
    assert results[0].model_sha256 == results[1].model_sha256 != results[2].model_sha256
    assert stored(tmp_path / "auto").config()[KEY] == "auto"
    assert "sums of counts that models start from" in results[0].privacy.uncovered


def test_a_run_without_helpers_leaves_counts_out_by_itself(tmp_path: Path) -> None:
    hashes, kinds = set(), list[str]()
    for name, options in (("auto", AUTO), ("off", {})):
        federation = SumFederation(tmp_path / name)
        federation.grid.before = lambda message: kinds.append(message.metadata.message_type)
        hashes.add(federation.run(summed(trust="local", **options)).model_sha256)
        assert stored(tmp_path / name).config()[KEY] is False
    assert len(hashes) == 1
    assert COUNTS not in kinds


def test_where_owners_allow_no_counts_the_model_starts_without_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    federation = SumFederation(tmp_path, policy=POLICY.model_copy(update={"allow_counts": "never"}))
    result = federation.run(summed(**AUTO))
    assert (result.status, result.rounds_done) == ("completed", 3)
    assert "counts" not in stored(tmp_path).load_model()[0]
    assert "count-offset=auto: round 0: 0 usable uploads, 3 needed" in caplog.text


@pytest.mark.parametrize(("clients", "epsilon", "is_on"), [(170, 8.0, True), (169, 8.0, False), (1056, 1.0, True)])
def test_under_noise_counts_are_summed_where_they_exceed_it(clients: int, epsilon: float, is_on: bool) -> None:
    config = resolve_counts(CATALOGUE, noised(epsilon, **AUTO), clients)
    assert config.task_options.count_offset == ("auto" if is_on else False)


@pytest.mark.parametrize(("clients", "is_on"), [(120, False), (121, True)])
def test_noise_on_counts_alone_needs_fewer_clients(clients: int, is_on: bool) -> None:
    config = resolve_counts(CATALOGUE, summed(**AUTO, **{"tasks__rules__count-epsilon": 8.0}), clients)
    assert config.task_options.count_offset == ("auto" if is_on else False)


def test_counts_may_have_noise_of_their_own(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)
    config = summed(**AUTO, **{"tasks__rules__count-epsilon": 5000.0, "tasks__rules__count-delta": 1e-6})
    result = federation.run(config)
    statement = result.privacy
    assert statement.counts.startswith("noise of each helper on their sum: (ε = 5000, δ = 1e-06)")
    assert (statement.unit, statement.epsilon) == ("none", None)
    assert stored(tmp_path).load_model()[0]["counts_noise"].item() > 0
    for session in federation.sessions.values():
        [entry] = session.releaser.budget.ledger(config.task_options.count_privacy).entries()
        assert (entry.slot.kind, entry.terms.unit, entry.terms.trust[:8]) == ("counts", "client", "helpers:")
        assert 0.9 < entry.terms.cost / gdp_of(5000.0, 1e-6) <= 1  # noise has a whole number as its scale


def test_a_sum_that_is_mostly_noise_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise that `auto` admits beforehand hides the counts of thousands of clients with one rule each alone."""
    monkeypatch.setattr("server.secure.counts.LEAST_VISIBLE", 1.01)
    federation = SumFederation(tmp_path)
    config = summed(**AUTO, **{"tasks__rules__count-epsilon": 5000.0})
    assert federation.run(config).status == "completed"
    assert "counts" not in stored(tmp_path).load_model()[0]
    assert all(federation.spent(config.model_copy(update={"privacy": config.task_options.count_privacy})))
    assert "of the counts' variance; the model starts without them" in caplog.text
    explicit = config.model_copy(update={"task_options": config.task_options.model_copy(update={"count_offset": True})})
    SumFederation(tmp_path / "explicit").run(explicit)
    assert "counts" in stored(tmp_path / "explicit").load_model()[0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"privacy.unit": "client"}, "set privacy.count-share instead"),
        ({"tasks.rules.count-epsilon": -1.0}, "greater than or equal to 0"),
    ],
)
def test_noise_on_counts_beside_noise_on_updates_is_refused(options: dict[str, Scalar], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse({"tasks.rules.count-epsilon": 8.0, **options})


def test_noise_of_helpers_without_helpers_is_refused_before_clients_are_asked(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, helpers=0)
    config = summed(trust="auto", **{"tasks__rules__count-epsilon": 8.0, "tasks__rules__count-offset": True})
    with pytest.raises(ConfigError, match="count-epsilon is noise of helpers, and this run has none"):
        federation.run(config)
    assert not (tmp_path / "toy" / "config.toml").exists()


@pytest.mark.parametrize("options", [{}, {"privacy__unit": "client", "privacy__epsilon": 5000.0}])
def test_a_resumed_run_keeps_the_counts_it_began_with(options: dict[str, Any], tmp_path: Path) -> None:
    config: RunConfig = summed(**AUTO, **options)
    whole = SumFederation(tmp_path / "whole").run(config)
    federation = SumFederation(tmp_path / "resumed")
    federation.grid.after = silent_after(opened=3 if options else 5)
    with pytest.raises(QuorumError, match="does not answer"):
        federation.run(config)
    asked: list[str] = []
    federation.connect().before = lambda message: asked.append(message.metadata.message_type)
    assert federation.run(config, resume=True).model_sha256 == whole.model_sha256
    assert COUNTS not in asked
    assert stored(tmp_path / "resumed").config()[KEY] == "auto"
