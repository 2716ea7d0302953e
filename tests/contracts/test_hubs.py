"""A federation of hubs ends as the same clients on nodes of their own, also in runs with noise."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message, RecordDict

from client.owner.policy import Policy
from common.arrays import norm
from common.config.parse import to_json
from common.config.run import RunConfig
from common.contribution import Contribution
from common.errors import WireError
from common.node_names import NamedKey, write_names
from common.options import Scalar
from common.wire.codec import decode, encode
from common.wire.hubs import split_answers, sum_of
from common.wire.messages import ENROL, TRAIN, EnrolReply, EnrolRequest
from server.aggregation.replies import are_summed
from server.clients.enrolment import SUMS, HubAdmission
from server.clients.ledger_heads import read_heads
from server.exchange.grid import PollingGrid, RoundLimits
from server.exchange.relays import HostedClient, HubGrid
from server.record.result import Result
from server.round import intake
from server.run import run
from tests.server.clients.test_node_directory import MARKS, NODES
from tests.server.simulated_nodes import INVITATION
from tests.support.hubs import NodeGrid, direct, nodes_of, settings, split, with_names
from tests.support.owners import Owners, model_of, noisy, owners
from tests.support.sensors import rounds_of
from tests.support.toys import CATALOGUE, METHODS


def hubs(people: Owners, together: int = 1) -> NodeGrid:
    return NodeGrid({node: one if callable(one) else one.respond for node, one in nodes_of(people, together).items()})


def run_flat(config: RunConfig, folder: Path, monkeypatch: pytest.MonkeyPatch, people: Owners) -> Result:
    """Run the same clients on nodes of their own, under the same names."""
    with monkeypatch.context() as patch:
        patch.setattr("server.clients.enrolment.NODE_NAME", re.compile(".*"))
        return run(NodeGrid({node: direct(s) for node, s in with_names(people).items()}), config, folder)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("fedrule", {}),
        ("fedrule", {"federation__cohort": 0.6, "federation__min_replies": 2}),
        ("fedga", {}),
        ("ifca", {"clusters": 2}),
        ("ditto", {}),
    ],
)
def test_hubs_end_in_the_bits_of_single_nodes(
    method: str, options: dict[str, Scalar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, method, **options)
    flat = run_flat(config, tmp_path / "flat", monkeypatch, owners(5))
    hosted = run(hubs(owners(5)), config, tmp_path / "hubs")
    assert hosted.model_sha256 == flat.model_sha256
    assert hosted.metrics == flat.metrics
    assert (
        hosted.clients.keys()
        == flat.clients.keys()
        == {"a/client-0", "b/client-1", "client-2", "a/client-3", "b/client-4"}
    )
    both = zip(rounds_of(tmp_path / "hubs"), rounds_of(tmp_path / "flat"), strict=True)
    assert all((h.asked, h.answered, h.loss) == (f.asked, f.answered, f.loss) for h, f in both)


def test_stacked_clients_of_hubs_end_as_single_nodes_up_to_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path)
    run_flat(config, tmp_path / "flat", monkeypatch, owners(5))
    run(hubs(owners(5), together=8), config, tmp_path / "hubs")
    flat, hosted = model_of(tmp_path / "flat"), model_of(tmp_path / "hubs")
    for name, a in flat.items():
        np.testing.assert_allclose(hosted[name], a, rtol=1e-6, atol=1e-6)


def test_each_client_of_a_hub_adds_its_own_noise_and_pays_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = noisy(tmp_path, rounds=2)
    alone, together = owners(5), owners(5)
    flat = run_flat(config, tmp_path / "flat", monkeypatch, alone)
    hosted = run(hubs(together), config, tmp_path / "hubs")
    assert hosted.model_sha256 == flat.model_sha256
    assert together.spent(config) == alone.spent(config)
    assert all(cost > 0 for cost in together.spent(config).values())


def test_a_client_of_a_hub_keeps_its_own_policy(tmp_path: Path) -> None:
    people = owners(5)
    people.sessions[1].policy = people.sessions[1].runs._policy = Policy(methods=("fedavg",))
    result = run(hubs(people), settings(tmp_path, federation__min_clients=4), tmp_path / "hubs")
    assert sorted(result.clients) == ["a/client-3", "b/client-1", "b/client-4", "client-2"]
    [first, *_] = rounds_of(tmp_path / "hubs")
    assert "fedrule" in first.refused["a/client-0"]


def test_one_message_serves_all_clients_of_a_hub(tmp_path: Path) -> None:
    grid = hubs(owners(5))
    result = run(grid, settings(tmp_path, "fedavg", rounds=1), tmp_path / "hubs")
    kinds = [message.metadata.message_type for message in grid.pushed if message.metadata.dst_node_id == 8]
    assert kinds == ["query.enrol", "train", "evaluate"]
    flat = run(
        NodeGrid({n: direct(s) for n, s in owners(5).sessions.items()}),
        settings(tmp_path, "fedavg", rounds=1),
        tmp_path / "f",
    )
    assert result.bytes_down < 0.65 * flat.bytes_down  # three messages in place of five
    assert result.bytes_up == pytest.approx(flat.bytes_up, rel=0.02)


def test_the_clients_of_a_hub_answer_as_nodes_do(tmp_path: Path) -> None:
    grid = HubGrid(hubs(owners(5)))
    polling = PollingGrid(grid, RoundLimits(3, 5.0, 0.0))
    nodes = [3, *grid.admit(8, ["a/client-0", "a/client-3"]).values()]
    content = encode(EnrolRequest("waits", to_json(settings(tmp_path)), CATALOGUE.to_json()))
    replies = polling.send_and_receive([Message(content, node, ENROL) for node in nodes])
    assert [reply.metadata.src_node_id for reply in replies] == nodes
    assert [decode(EnrolReply, reply.content).client for reply in replies[1:]] == ["a/client-0", "a/client-3"]


def test_runs_with_helpers_refuse_hubs(tmp_path: Path) -> None:
    grid = HubGrid(hubs(owners(5)))
    [reply] = PollingGrid(grid, RoundLimits(1, 5.0, 0.0)).send_and_receive([Message(encode(INVITATION), 8, ENROL)])
    with pytest.raises(WireError, match="hubs do not take part in runs with helpers"):
        HubAdmission(grid, refusal=SUMS).admit(reply, {})


def test_clients_of_one_key_have_ledgers_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nodes").mkdir()
    write_names(tmp_path / "nodes", {"a": NamedKey(fingerprint=MARKS[1], clients=2)})
    grid = hubs(owners(5))
    keys = [replace(NODES[0], node_id=8), replace(NODES[1], node_id=9)]
    monkeypatch.setattr(grid, "get_nodes", lambda: [HostedClient(k.node_id, 0, "", k.public_key) for k in keys])
    config = noisy(tmp_path, rounds=2, federation__min_clients=2)
    for again in (False, True):  # the second enrolment finds the heads of the first
        result = run(grid, config.model_copy(update={"run_id": f"r{again}"}), tmp_path / "runs", tmp_path / "nodes")
        assert sorted(result.clients) == ["a/client-0", "a/client-3", "client-2"]
    assert read_heads(tmp_path / "nodes").keys() == {f"{MARKS[1]}#a/client-0", f"{MARKS[1]}#a/client-3"}


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


def two_hubs(people: Owners) -> NodeGrid:
    """Return two hubs that train stacked, and a client by itself."""
    hub, others = split(people)
    return NodeGrid({**others, 8: hub.respond})


def both(folder: Path, people: Callable[[], Owners], configured: Callable[..., RunConfig]) -> tuple[Path, Path]:
    """Train with sums and with single replies; return the folders of the runs."""
    for answer in ("sums", "replies"):
        run(two_hubs(people()), configured(folder, federation__answer=answer), folder / answer)
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
    run(two_hubs(people), config, tmp_path / "runs")
    assert len(collected) == 2
    run(two_hubs(single), noisy(tmp_path, rounds=2, federation__answer="replies"), tmp_path / "replies")
    assert people.spent(config) == single.spent(config)
    assert all(cost > 0 for cost in people.spent(config).values())


@pytest.mark.parametrize(
    "options", [{"federation__robust": "median", "federation__min_replies": 3}, {"federation__answer": "replies"}]
)
def test_rules_that_need_single_replies_get_them(
    options: dict[str, Scalar], tmp_path: Path, collected: list[Contribution]
) -> None:
    run(two_hubs(owners(5)), settings(tmp_path, rounds=1, **options), tmp_path / "runs")
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
