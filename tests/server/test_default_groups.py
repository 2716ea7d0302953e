"""Sums that nothing bounds have three groups by default, and one liar of a hundred then hardly turns the step."""

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from common.config.parse import parse
from common.contribution import UPDATE, Contribution, Member
from common.models import parameters
from common.privacy.vectors import to_vector
from common.wire.codec import decode, encode
from common.wire.messages import TRAIN, TrainReply
from server.aggregation.robust import add_groups
from server.record.folder import RunDirectory
from server.run import read_catalogue
from server.secure.parties import with_groups
from tests.support.build import task_model
from tests.support.sum_runs import SumFederation, summed


@pytest.mark.parametrize(
    ("changed", "clients", "groups"),
    [
        ({}, 20, 3),
        ({}, 19, 1),
        ({"federation.cohort": 0.5}, 39, 1),
        ({"federation.cohort": 0.5}, 40, 3),
        ({"secure-sums.groups": 1}, 100, 1),
        ({"secure-sums.groups": 5}, 25, 5),
        ({"privacy.unit": "client"}, 100, 1),
        ({"method": "ridge"}, 100, 7),
        ({"method": "ridge"}, 29, 1),
        ({"first": "ridge"}, 100, 1),
        ({"method": "ifca"}, 100, 1),
    ],
)
def test_groups_where_no_proof_bounds_an_upload(changed: dict[str, str], clients: int, groups: int) -> None:
    config = parse({"task": "rules", "method": "fedavg", **changed})
    assert with_groups(config, clients).secure_sums.groups == groups


@pytest.mark.parametrize("factor", [3.0, 1e9])
def test_sums_of_groups_are_exact_and_a_false_one_hardly_turns_them(factor: float) -> None:
    rng, totals = np.random.default_rng(0), []
    tables = [np.append(rng.uniform(0.7, 1.3, 50), 0.1 * (np.arange(7) == g))[:, None] for g in range(7)]
    for false in (tables[0], factor * rng.standard_normal((57, 1))):
        groups = [Contribution() for _ in tables]
        for one, table in zip(groups, [false, *tables[1:]], strict=True):
            one.record([Member("a"), Member("b")])
            one.add_sums(UPDATE, {"table": 2 * table})
        totals.append(add_groups(groups).sums[UPDATE]["table"].ravel())
    np.testing.assert_allclose(totals[0], 2 * np.sum(tables, axis=0).ravel(), rtol=1e-12)
    assert totals[0] @ totals[1] > 0.95 * np.linalg.norm(totals[0]) * np.linalg.norm(totals[1])


def test_a_liar_hardly_turns_the_step_of_default_groups(tmp_path: Path) -> None:
    """Its upload is anything: random numbers of the largest magnitude that a sum can hold."""
    config = summed(rounds=1, weighting="uniform", **{"secure-sums__min-sum": 3})
    steps, start = [], parameters(task_model(config, read_catalogue(config)))

    def lie(message: Message) -> Message:
        if message.metadata.message_type == TRAIN and message.metadata.src_node_id == 1:
            reply = decode(TrainReply, message.content)
            drawn = np.random.default_rng(1).integers(-(2**50), 2**50, reply.masked["sum"].size)
            reply.masked["sum"] = reply.masked["sum"] + drawn.astype(np.uint64)
            message.content = encode(reply)
        return message

    for name in ("honest", "lied"):
        federation = SumFederation(tmp_path / name, 30)
        if name == "lied":
            federation.grid.after = lie
        federation.run(config)
        assert len([one for g in range(3) for one in federation.sums(f"train/{g}")]) == 3
        model, _ = RunDirectory(federation.runs, "toy").load_model()
        steps.append(to_vector(model) - to_vector(start))
    cosine = steps[0] @ steps[1] / (np.linalg.norm(steps[0]) * np.linalg.norm(steps[1]))
    assert cosine > 0.9
