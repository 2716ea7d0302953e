"""Hubs that add up the replies of their clients: the model of single replies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message, RecordDict

from client.owner.policy import Policy
from common.arrays import norm
from common.config.run import RunConfig
from common.contribution import Contribution
from common.options import Scalar
from common.wire.hubs import split_answers, sum_of
from common.wire.messages import TRAIN
from server.aggregation.replies import are_summed
from server.round import intake
from server.run import run
from tests.support.hubs import NodeGrid, settings, split
from tests.support.owners import Owners, model_of, noisy, owners
from tests.support.sensors import rounds_of
from tests.support.toys import METHODS


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[Contribution]:
    """Return the sums of each round that has them, as they come."""
    add_up, seen = intake.add_up, list[Contribution]()

    def watched(replies: Any, *arguments: Any) -> Contribution:
        total = add_up(replies, *arguments)
        if are_summed(replies):
            seen.append(total)
        return total

    monkeypatch.setattr(intake, "add_up", watched)
    return seen


def hubs(people: Owners) -> NodeGrid:
    """Return two hubs that train stacked, and a client by itself."""
    hub, others = split(people)
    return NodeGrid({**others, 8: hub.respond})


def both(folder: Path, people: Callable[[], Owners], configured: Callable[..., RunConfig]) -> tuple[Path, Path]:
    """Train with sums and with single replies; return the folders of the runs."""
    for answer in ("sums", "replies"):
        run(hubs(people()), configured(folder, federation__answer=answer), folder / answer)
    return folder / "sums", folder / "replies"


@pytest.mark.parametrize("method", [*METHODS, "fedrep", "local"])
def test_sums_train_the_model_of_single_replies(method: str, tmp_path: Path, collected: list[Contribution]) -> None:
    def configured(folder: Path, **options: Scalar) -> RunConfig:
        return settings(folder, method, rounds=2, **options)

    folders = both(tmp_path, lambda: owners(5), configured)
    assert [len(found.names) for found in collected] == [5, 5]
    summed, single = map(model_of, folders)
    assert norm(summed) == pytest.approx(norm(single), rel=1e-6)
    for name, a in single.items():
        np.testing.assert_allclose(summed[name], a, rtol=1e-4, atol=1e-5)
    for one, other in zip(*map(rounds_of, folders), strict=True):
        assert (one.asked, one.answered, one.refused) == (other.asked, other.answered, other.refused)
        assert one.loss == pytest.approx(other.loss, rel=1e-5)


def test_sums_have_the_steps_that_each_policy_allows(tmp_path: Path, collected: list[Contribution]) -> None:
    def people() -> Owners:
        found = owners(5)
        found.sessions[4].policy = found.sessions[4].runs._policy = Policy(max_local_steps=1)
        return found

    folders = both(tmp_path, people, lambda folder, **options: settings(folder, rounds=2, **options))
    assert collected[0].steps["a/client-3"] == 1 < collected[0].steps["a/client-0"]
    for name, a in model_of(folders[1]).items():
        np.testing.assert_allclose(model_of(folders[0])[name], a, rtol=1e-4, atol=1e-5)


def test_noise_is_added_and_paid_for_by_each_client(tmp_path: Path, collected: list[Contribution]) -> None:
    people, single, config = owners(5), owners(5), noisy(tmp_path, rounds=2)
    run(hubs(people), config, tmp_path / "runs")
    assert len(collected) == 2
    run(hubs(single), noisy(tmp_path, rounds=2, federation__answer="replies"), tmp_path / "replies")
    assert people.spent(config) == single.spent(config)
    assert all(cost > 0 for cost in people.spent(config).values())


@pytest.mark.parametrize(
    "options", [{"federation__robust": "median", "federation__min_replies": 3}, {"federation__answer": "replies"}]
)
def test_rules_that_need_single_replies_get_them(
    options: dict[str, Scalar], tmp_path: Path, collected: list[Contribution]
) -> None:
    run(hubs(owners(5)), settings(tmp_path, rounds=1, **options), tmp_path / "runs")
    assert not collected
    assert rounds_of(tmp_path / "runs")[0].answered == 5


def test_a_long_reply_is_sent_by_itself(tmp_path: Path) -> None:
    hub, others = split(owners(5))
    replies = list[RecordDict]()

    def noted(message: Message) -> Message:
        reply = hub.respond(message)
        if message.metadata.message_type == TRAIN:
            replies.append(reply.content)
        return reply

    config = settings(tmp_path, rounds=1, federation__norm_bound=1.2)
    run(NodeGrid({**others, 8: noted}), config, tmp_path)
    total, answers = sum_of(replies[0]), split_answers(replies[0])
    assert len(total.clients if total else ()) < len(answers) == 2
    assert not any("one sum" in reason for reason in rounds_of(tmp_path)[0].refused.values())
