"""Clients that come late: into an open sum of a closed form, between two sums, and after the solution."""

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from client.owner.policy import Policy
from common.arrays import Arrays
from common.tasks.rules import ease
from common.wire.messages import TRAIN
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from tests.support.hubs import Node, NodeGrid, direct, settings
from tests.support.owners import SHARING, owners

ALLOWED: Policy = SHARING.model_copy(update={"methods": ("ridge",), "allow_counts": "clear"})


def federation(joins_in: int, number: int = 5) -> dict[int, Node]:
    """Return nodes of which the last one connects while the first answers in that round."""
    nodes = {node: direct(session) for node, session in owners(number, ALLOWED).sessions.items()}
    late, first, rounds = nodes.pop(number), nodes[1], iter(range(1, 10))

    def answer(message: Message) -> Message | None:
        if message.metadata.message_type == TRAIN and next(rounds) == joins_in:
            nodes[number] = late
        return first(message)

    nodes[1] = answer
    return nodes


def solve(folder: Path, nodes: dict[int, Node], least: int = 4) -> tuple[Arrays, list[RoundEvent]]:
    """Return the solution of a run over these nodes, and its rounds."""
    folder.mkdir()
    config = settings(folder, "ridge", strength=1.0, federation__min_clients=least)
    assert run(NodeGrid(nodes), config, folder).status == "completed"
    directory = RunDirectory(folder, "toy")
    checkpoint = directory.checkpoints.load_latest()
    assert checkpoint is not None
    return checkpoint.groups["statics"], [event for event in directory.events() if isinstance(event, RoundEvent)]


def test_a_client_that_joins_an_open_sum_is_in_it(tmp_path: Path) -> None:
    nodes = {node: direct(session) for node, session in owners(5, ALLOWED).sessions.items()}
    expected, _ = solve(tmp_path / "all", nodes, 5)
    found, [first, second] = solve(tmp_path / "late", federation(joins_in=1))
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    assert (first.server["late"], first.answered, second.answered) == (1.0, 4, 5)
    assert "late" not in second.server


def test_a_client_that_joins_in_the_last_sum_is_in_it_alone(tmp_path: Path) -> None:
    four = {node: direct(session) for node, session in owners(4, ALLOWED).sessions.items()}
    expected, _ = solve(tmp_path / "four", four)
    found, [_, second] = solve(tmp_path / "late", federation(joins_in=2))
    np.testing.assert_array_equal(found[ease.TRIPLES], expected[ease.TRIPLES])
    trace = found[ease.VALUES].sum() - expected[ease.VALUES].sum()
    assert trace == pytest.approx(1, abs=1e-4), "a home has length 1 in G"
    assert second.server["late"] == 1
