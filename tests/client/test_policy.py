"""The owner's terms: what is refused, in words that may leave, and files that are wrong."""

from pathlib import Path

import pytest

from client.policy import Policy, read_policy
from common.config.parse import parse
from common.errors import ConfigError, RefusedError


def test_without_a_file_everything_but_counts_is_allowed() -> None:
    assert read_policy(None) == Policy()
    Policy().check(parse({}))
    with pytest.raises(RefusedError, match=r"tasks\.rules\.count-offset needs counts in clear"):
        Policy().check(parse({"tasks.rules.count-offset": True}))
    Policy(allow_counts=True).check(parse({"tasks.rules.count-offset": True}))


def test_counts_with_noise_of_their_own_need_no_leave_to_go_in_clear() -> None:
    noised = {
        "task": "markets",
        "method": "fedavg",
        "tasks.markets.count-offset": True,
        "tasks.markets.count-epsilon": 8.0,
    }
    Policy().check(parse(noised))
    with pytest.raises(RefusedError, match="count-offset needs counts in clear"):
        Policy().check(parse({**noised, "tasks.markets.count-epsilon": 0.0}))
    with pytest.raises(RefusedError, match=r"privacy\.unit=record is not allowed"):
        Policy(units=("client",)).check(parse(noised))
    with pytest.raises(RefusedError, match=r"privacy\.delta=0.001 is above"):
        Policy(max_epsilon=10, require_noise=False).check(parse({**noised, "tasks.markets.count-delta": 1e-3}))


def test_windows_are_handed_over_where_the_owner_says_so_only() -> None:
    shared = parse({"method": "fedstl", "task": "traffic", "algorithm.fedstl.cluster-data": "shared_sample"})
    with pytest.raises(RefusedError, match="sends data in plaintext, which this client's policy does not allow"):
        Policy().check(shared)
    Policy(allow_shared_sample=True).check(shared)


def test_who_requires_noise_shows_no_item_ids() -> None:
    paper = {"method": "fedavg", "task": "ratings", "model": "paper", "privacy.unit": "client"}
    Policy(require_noise=True).check(parse(paper))
    Policy().check(parse({**paper, "tasks.ratings.items": "paper"}))
    with pytest.raises(RefusedError, match=r"sends row ids in plaintext.*policy requires noise"):
        Policy(require_noise=True).check(parse({**paper, "tasks.ratings.items": "paper"}))


@pytest.mark.parametrize("limit", ["max-epsilon = 10.0", "max-epsilon-per-round = 1.0"])
def test_who_limits_epsilon_requires_noise_unless_told_otherwise(limit: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(limit)
    policy = read_policy(tmp_path / "policy.toml")
    with pytest.raises(RefusedError, match="requires noise"):
        policy.check(parse({"method": "fedavg"}))
    policy.check(noisy := parse({"method": "fedavg", "privacy.unit": "client"}))
    assert not policy.shares_metrics(noisy.privacy)
    (tmp_path / "policy.toml").write_text(f"{limit}\nrequire-noise = false\n")
    read_policy(tmp_path / "policy.toml").check(parse({"method": "fedavg"}))


def test_work_that_nothing_leaves_of_needs_no_noise() -> None:
    home = Policy(max_epsilon=1.0, share_metrics="never", methods=("fedavg",)).at_home()
    home.check(exact := parse({"method": "fedavg"}))
    assert home.shares_metrics(exact.privacy)
    with pytest.raises(RefusedError, match="method 'fedrule' is not allowed"):
        home.check(parse({}))


def test_methods_and_tasks_not_listed_are_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="method 'fedrule' is not allowed by this client's policy"):
        Policy(methods=("fedavg",)).check(parse({}))
    with pytest.raises(RefusedError, match="task 'rules' is not allowed by this client's policy"):
        Policy(tasks=()).check(parse({}))
    Policy(methods=("fedavg",)).check(parse({"method": "fedavg"}))


def test_the_method_inside_a_planner_counts_unless_only_planners_are_listed() -> None:
    planned = parse({"method": "uniform", "algorithm.uniform.inner": "fedprox", "privacy.unit": "client"})
    with pytest.raises(RefusedError, match="method 'fedprox' is not allowed by this client's policy"):
        Policy(methods=("uniform", "fedavg")).check(planned)
    with pytest.raises(RefusedError, match="method 'uniform' is not allowed by this client's policy"):
        Policy(methods=("fedprox",)).check(planned)
    Policy(methods=("uniform",)).check(planned)
    Policy(methods=("uniform", "fedprox")).check(planned)


@pytest.mark.parametrize(("most", "wished", "made"), [(0, 9, 9), (3, 9, 3), (3, 2, 2)])
def test_local_steps_have_a_limit(most: int, wished: int, made: int) -> None:
    assert Policy(max_local_steps=most).local_steps(wished) == made


def test_a_file_says_it_in_kebab_case(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('methods = ["fedavg", "fedprox"]\nallow-counts = true\nmax-local-steps = 2\n')
    assert read_policy(path) == Policy(methods=("fedavg", "fedprox"), allow_counts=True, max_local_steps=2)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("allow-count = true", "'allow-count'"),
        ('allow-counts = "perhaps"', "'allow-counts'"),
        ("methods = 3", "'methods'"),
        ("max-local-steps = -1", "'max-local-steps'"),
        ("methods = [", "policy .*policy.toml: "),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        read_policy(path)
    assert str(caught.value).startswith(f"policy {path}: ")


def test_a_missing_file_is_no_permission(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_policy(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('methods = ["fedrul"]', "'methods': unknown 'fedrul'; did you mean 'fedrule'?"),
        ('units = ["clients"]', "'units': unknown 'clients'; did you mean 'client'?"),
        ("max-epsilo = 1.0", "unknown option 'max-epsilo'; did you mean 'max-epsilon'?"),
    ],
)
def test_who_mistypes_is_told_what_was_meant(text: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_policy(path)
    assert str(caught.value) == f"policy {path}: {hint}"


def test_a_policy_that_an_editor_of_windows_saved(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes("\ufeff# größe\nmax-local-steps = 2\n".encode())
    assert read_policy(path).max_local_steps == 2
    path.write_bytes("# größe\n".encode("cp1252"))
    with pytest.raises(ConfigError, match="no UTF-8 text"):
        read_policy(path)
