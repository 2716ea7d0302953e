"""Policies of data owners: refused runs, and invalid policy files."""

from pathlib import Path
from typing import Any

import pytest

from client.owner.policy import Policy, find_looser, read_policy
from common.config.parse import parse
from common.errors import ConfigError, RefusedError


def test_the_default_policy_allows_all_but_statistics_without_noise() -> None:
    assert read_policy(None) == Policy()
    Policy().check(parse({"method": "fedavg"}))
    Policy().check(parse({"method": "ridge", "privacy.unit": "client"}))
    with pytest.raises(RefusedError, match=r"does not allow sending statistics in plaintext \(allow-counts = never\)"):
        Policy().check(parse({"method": "ridge"}))
    Policy(allow_counts="clear").check(parse({"method": "ridge"}))


def test_a_policy_that_requires_noise_refuses_to_send_item_ids() -> None:
    paper = {"method": "fedavg", "task": "ratings", "model": "paper", "privacy.unit": "client"}
    Policy(require_noise=True).check(parse(paper))
    Policy().check(parse({**paper, "tasks.ratings.items": "paper"}))
    with pytest.raises(RefusedError, match=r"requires differential privacy; task 'ratings' sends row ids in plaintext"):
        Policy(require_noise=True).check(parse({**paper, "tasks.ratings.items": "paper"}))


@pytest.mark.parametrize("limit", ["max-epsilon = 10.0", "max-epsilon-per-round = 1.0"])
def test_a_limit_on_epsilon_requires_noise_by_default(limit: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(limit)
    policy = read_policy(tmp_path / "policy.toml")
    with pytest.raises(RefusedError, match="requires differential privacy"):
        policy.check(parse({"method": "fedavg"}))
    policy.check(noisy := parse({"method": "fedavg", "privacy.unit": "client"}))
    assert not policy.shares_metrics(noisy.privacy)
    (tmp_path / "policy.toml").write_text(f"{limit}\nrequire-noise = false\n")
    read_policy(tmp_path / "policy.toml").check(parse({"method": "fedavg"}))


def test_local_work_needs_no_noise() -> None:
    policy = Policy(max_epsilon=1.0, share_metrics="never", methods=("fedavg",)).for_local_use()
    policy.check(exact := parse({"method": "fedavg"}))
    assert policy.shares_metrics(exact.privacy)
    with pytest.raises(RefusedError, match="does not allow method 'fedrule'"):
        policy.check(parse({}))


def test_unlisted_methods_and_tasks_are_refused() -> None:
    with pytest.raises(RefusedError, match="the policy does not allow method 'fedrule'"):
        Policy(methods=("fedavg",)).check(parse({}))
    with pytest.raises(RefusedError, match="the policy does not allow task 'rules'"):
        Policy(tasks=()).check(parse({}))
    Policy(methods=("fedavg",)).check(parse({"method": "fedavg"}))


def test_the_inner_method_is_checked_unless_only_planners_are_listed() -> None:
    planned = parse({"method": "uniform", "planner.inner": "fedprox", "privacy.unit": "client"})
    with pytest.raises(RefusedError, match="the policy does not allow method 'fedprox'"):
        Policy(methods=("uniform", "fedavg")).check(planned)
    with pytest.raises(RefusedError, match="the policy does not allow method 'uniform'"):
        Policy(methods=("fedprox",)).check(planned)
    Policy(methods=("uniform",)).check(planned)
    Policy(methods=("uniform", "fedprox")).check(planned)


@pytest.mark.parametrize(("limit", "requested", "steps"), [(0, 9, 9), (3, 9, 3), (3, 2, 2)])
def test_local_steps_have_a_limit(limit: int, requested: int, steps: int) -> None:
    assert Policy(max_local_steps=limit).local_steps(requested) == steps


def test_keys_of_a_file_are_in_kebab_case(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('methods = ["fedavg", "fedprox"]\nallow-counts = true\nmax-local-steps = 2\n')
    assert read_policy(path) == Policy(methods=("fedavg", "fedprox"), allow_counts="clear", max_local_steps=2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("allow-count = true", "'allow-count'"),
        ('allow-counts = "perhaps"', "'allow-counts'"),
        ("methods = 3", "'methods'"),
        ("max-local-steps = -1", "'max-local-steps'"),
        ("methods = [", "policy .*policy.toml: "),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=reason) as caught:
        read_policy(path)
    assert str(caught.value).startswith(f"policy {path}")
    assert ("end of document" if text.endswith("[") else ", line 1: ") in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_policy(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('methods = ["fedrul"]', "'methods': unknown 'fedrul'; did you mean 'fedrule'?"),
        ('units = ["clients"]', "'units': unknown 'clients'; did you mean 'client'?"),
        (
            'methods = ["fedsgd"]',
            "'methods': planner 'fedsgd' moved to the package fedloom-studies-planners; pip install ./studies/plugins/planners",
        ),
        ("max-epsilo = 1.0", "unknown option 'max-epsilo'; did you mean 'max-epsilon'?"),
        (
            "allow-shared-sample = true",
            "option 'allow-shared-sample' was removed: no run asks for windows of training data; delete the line",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_closest_one(text: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_policy(path)
    assert str(caught.value) == f"policy {path}, line 1: {hint}"


def test_an_invalid_option_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("# mine\n\ndelta = 1e-5\n'max-epsilon' = -1.0\n")
    with pytest.raises(ConfigError, match=r"policy\.toml, line 4: 'max-epsilon': "):
        read_policy(path)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes("\ufeff# größe\nmax-local-steps = 2\n".encode())
    assert read_policy(path).max_local_steps == 2
    path.write_bytes("# größe\n".encode("cp1252"))
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        read_policy(path)


PINS = {"ann": "SHA256:" + "a" * 43}

STRICTER: dict[str, tuple[Any, Any]] = {
    "methods": (("fedavg",), ("fedavg", "fedrule")),
    "tasks": (("rules",), ("rules", "traffic")),
    "units": (("client",), ("client", "record")),
    "trust": (("helpers",), ("local", "helpers")),
    "helpers_on_first_use": (False, True),
    "serve_as_helper": (False, True),
    "max_epsilon": (1.0, 2.0),
    "delta": (1e-6, 1e-5),
    "max_epsilon_per_round": (0.5, 1.0),
    "require_noise": (True, False),
    "max_local_steps": (4, 0),
    "strict_property": (True, False),
    "min_sum": (9, 5),
    "min_helpers": (3, 2),
    "allow_counts": ("summed", "clear"),
    "allow_names": ("summed", "clear"),
    "allow_harm": ((), ("heat-when-open",)),
    "share_metrics": ("never", "without_noise"),
    "helpers": ({}, PINS),
}


@pytest.mark.parametrize("key", Policy.model_fields)
def test_a_key_allows_more_in_one_direction_alone(key: str) -> None:
    strict, loose = (Policy(**{key: value}) for value in STRICTER[key])
    assert key.replace("_", "-") in find_looser(loose, strict)
    assert key.replace("_", "-") not in find_looser(strict, loose)
    assert find_looser(loose, loose) == find_looser(strict, strict) == []


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
