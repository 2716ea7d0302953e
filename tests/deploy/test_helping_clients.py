"""Clients that help: sums with them are those of other helpers, and no set holds a helper under its own name."""

from pathlib import Path

import pytest

from client.owner.policy import Policy
from common.errors import QuorumError
from common.node_names import fingerprint
from tests.support.helpers import node_keys
from tests.support.sum_runs import POLICY, SumFederation, noised, summed


def test_two_clients_can_be_the_helpers_of_a_run(tmp_path: Path) -> None:
    results = [
        SumFederation(tmp_path / str(also), helpers=2 - also, also=also).run(summed("fedrule")) for also in (0, 2)
    ]
    assert results[0].model_sha256 == results[1].model_sha256, "without noise helpers leave no trace"
    assert [list(result.privacy.helpers) for result in results] == [
        ["helper-0", "helper-1"],
        ["client-0-helper", "client-1-helper"],
    ]
    assert len(results[1].clients) == len(results[0].clients) == 4
    assert results[1].privacy.sums == results[0].privacy.sums


def test_an_owner_relies_on_the_helper_on_its_own_node(tmp_path: Path) -> None:
    """The statement names it; owners who have not pinned it refuse."""
    mine = fingerprint(node_keys(2)[1].public_key())
    policy = Policy(min_sum=2, min_helpers=1, helpers={"mine": mine}, share_metrics="always")
    pinned = SumFederation(tmp_path / "own", helpers=1, also=1, policy=policy)
    result = pinned.run(noised())
    assert result.status == "completed"
    assert "client-0-helper" in result.privacy.guarantee
    strict = policy.model_copy(update={"min_helpers": 2})
    with pytest.raises(QuorumError, match="1 helper of this run are pinned"):
        SumFederation(tmp_path / "strict", helpers=1, also=1, policy=strict).run(noised())


def test_with_other_helpers_online_a_run_needs_no_client_to_help(tmp_path: Path) -> None:
    result = SumFederation(tmp_path, helpers=2, also=1, policy=POLICY).run(summed())
    assert (result.status, len(result.clients)) == ("completed", 4)
