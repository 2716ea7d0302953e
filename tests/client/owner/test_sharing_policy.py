"""Policies on statistics, metrics, trust and helpers: what leaves a client beside noisy updates."""

from pathlib import Path

import pytest

from client.owner.policy import Policy, read_policy
from common.config.parse import parse
from common.errors import ConfigError, RefusedError


@pytest.mark.parametrize(
    ("allowed", "trust", "accepted"),
    [
        *[("never", "local", False), ("never", "helpers", False), ("summed", "local", False)],
        *[("summed", "helpers", True), ("clear", "local", True), ("clear", "helpers", True)],
    ],
)
def test_statistics_may_be_summed_only(allowed: str, trust: str, accepted: bool) -> None:
    config = parse({"method": "ridge", "privacy.trust": trust})
    policy = Policy.model_validate({"allow-counts": allowed})
    if accepted:
        policy.check(config)
    else:
        with pytest.raises(RefusedError, match=rf"sending statistics .*\(allow-counts = {allowed}\)"):
            policy.check(config)


def test_a_run_under_another_trust_is_refused() -> None:
    config = parse({"privacy.trust": "helpers"})
    Policy().check(config)
    with pytest.raises(RefusedError, match=r"does not allow privacy.trust=helpers \(trust = local\)"):
        Policy(trust=("local",)).check(config)
    with pytest.raises(RefusedError, match=r"does not allow privacy.trust=local \(trust = helpers\)"):
        Policy(trust=("helpers",)).check(parse({}))


def test_pinned_helpers_are_read_by_name(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(f'min-helpers = 1\n[helpers]\ncouncil = "SHA256:{"a" * 43}"\n')
    assert read_policy(path).helpers == {"council": f"SHA256:{'a' * 43}"}
    path.write_text('[helpers]\ncouncil = "sha256:abc"\n')
    with pytest.raises(ConfigError, match=r"policy.toml.*council"):
        read_policy(path)


@pytest.mark.parametrize("mechanism", ["laplace", "privunit"])
def test_noise_of_helpers_is_gaussian(mechanism: str) -> None:
    noise = {"privacy.unit": "client", "privacy.mechanism": mechanism}
    parse(noise)
    with pytest.raises(ConfigError, match=r"privacy.trust=helpers needs mechanism=gaussian"):
        parse({**noise, "privacy.trust": "helpers"})
