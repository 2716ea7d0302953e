"""Helpers of `fedloom up`: their number, their keys and the policy that pins them."""

from pathlib import Path

import pytest

from client.owner.policy import read_policy
from common.config.parse import parse
from common.node_names import fingerprint
from deploy.data.sources import partition_source
from deploy.federation.local_clients import helper_homes, pin_helpers
from deploy.keys.nodes import load_public_key, public_path

OWN = 'max-local-steps = 7\n[helpers]\nauditor = "SHA256:' + "A" * 43 + '"\n'


def test_a_run_with_helpers_has_its_own_ones_and_other_runs_none(tmp_path: Path) -> None:
    config = parse({"method": "fedavg", "privacy.trust": "helpers", "secure-sums.helpers": 3})
    assert [*helper_homes(config, tmp_path)] == ["helper-1", "helper-2", "helper-3"]
    assert not helper_homes(parse({"method": "fedavg"}), tmp_path)


@pytest.mark.parametrize("text", ["", "max-local-steps = 7\n"])
def test_clients_of_own_data_pin_the_helpers_by_their_keys(text: str, tmp_path: Path) -> None:
    homes = helper_homes(parse({"method": "fedavg", "privacy.trust": "helpers"}), tmp_path)
    (tmp_path / "own.toml").write_text(text)
    written = pin_helpers(homes, tmp_path / "own.toml" if text else None, tmp_path / "pinned.toml")
    policy = read_policy(written)
    assert policy.max_local_steps == (7 if text else 0)
    keys = {name: load_public_key(public_path(home / "node.key")) for name, home in homes.items()}
    assert policy.helpers == {name: fingerprint(key) for name, key in keys.items()}
    assert written.stat().st_mode & 0o077 == 0
    assert read_policy(pin_helpers(homes, None, tmp_path / "again.toml")).helpers == policy.helpers


def test_a_policy_with_own_pins_stays(tmp_path: Path) -> None:
    homes = helper_homes(parse({"method": "fedavg", "privacy.trust": "helpers"}), tmp_path)
    (tmp_path / "own.toml").write_text(OWN)
    assert pin_helpers(homes, tmp_path / "own.toml", tmp_path / "pinned.toml") == tmp_path / "own.toml"
    assert not (tmp_path / "pinned.toml").exists()


def test_demo_data_are_partitioned_among_as_many_clients_as_a_sum_needs() -> None:
    assert len(partition_source("rules", "demo", None, None, fewest=5)) == 5
