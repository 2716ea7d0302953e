"""Signal of training under noise: its formula, what a refusal suggests, and who is not asked."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from common.arrays import Arrays
from common.config.parse import parse
from common.errors import ConfigError
from common.options import Scalar
from common.privacy.accounts import gdp_of
from common.privacy.options import PrivacyOptions, count_participations
from common.privacy.signal import LEAST_SIGNAL, MOST_EPSILON, Training, check_signal, count_numbers, describe_training
from common.tasks.registry import TASKS

CLIENT = PrivacyOptions(unit="client", epsilon=8.0, clip=0.5)
SIZE = 20_000
MODEL: Arrays = {"weight": np.zeros(SIZE)}

pytestmark = pytest.mark.usefixtures("refused_noise")


def checked(clients: int, **options: Scalar) -> str:
    """Return the refusal of training with these options; empty if there is none."""
    flat = {"task": "rules", "method": "fedavg", "privacy.unit": "client", "privacy.epsilon": 8.0}
    try:
        check_signal(
            parse({**flat, **{key.replace("__", "."): value for key, value in options.items()}}), MODEL, clients
        )
    except ConfigError as error:
        return str(error)
    return ""


def test_the_noise_on_a_mean_is_as_long_as_simulated_noise() -> None:
    clients, helpers, rng = 30, 2, np.random.default_rng(0)
    sigma = 2 * CLIENT.clip / math.sqrt(2 * gdp_of(8.0, 1e-5) / 10)
    for noises, mean in ((0, clients), (helpers, helpers)):
        drawn = sigma * rng.standard_normal((mean, SIZE)).sum(0) / clients
        one = Training(CLIENT, SIZE, clients, noises, rounds=10, participations=10)
        assert one.noise == pytest.approx(np.linalg.norm(drawn), rel=0.02)
        assert one.signal == pytest.approx(math.sqrt(10) * CLIENT.clip / np.linalg.norm(drawn), rel=0.02)


def test_the_signal_of_gaussian_noise_depends_neither_on_the_rounds_nor_on_the_clip() -> None:
    signals = {
        Training(PrivacyOptions(unit="client", epsilon=8.0, clip=clip), SIZE, 30, 2, rounds, rounds).signal
        for rounds in (1, 10, 100)
        for clip in (0.01, 1.0)
    }
    assert max(signals) == pytest.approx(min(signals))


@pytest.mark.parametrize("mechanism", ["laplace", "privunit"])
def test_pure_mechanisms_have_less_signal_in_more_rounds(mechanism: str) -> None:
    options = PrivacyOptions.model_validate({"unit": "client", "mechanism": mechanism, "epsilon": 8.0})
    first, second = (Training(options, SIZE, 30, 0, rounds, rounds).signal for rounds in (1, 16))
    assert second < first / 2


@pytest.mark.parametrize("noises", [0, 2])
def test_the_suggested_number_of_clients_and_epsilon_are_just_enough(noises: int) -> None:
    one = Training(CLIENT, SIZE, 4_000 if noises else 3_000_000, noises)
    assert one.signal < LEAST_SIGNAL
    enough = Training(CLIENT, SIZE, one.needed_clients, noises)
    assert LEAST_SIGNAL <= enough.signal < 1.12 * LEAST_SIGNAL
    epsilon = one.needed_epsilon
    assert LEAST_SIGNAL <= one.with_epsilon(epsilon).signal < 1.12 * LEAST_SIGNAL
    assert epsilon <= MOST_EPSILON
    assert math.isinf(Training(CLIENT, SIZE, 12, noises).needed_epsilon)


def test_a_dozen_homes_are_refused_with_the_numbers_and_what_helps() -> None:
    refusal = checked(12)
    numbers = re.search(
        r"the mean update of 12 homes has norm 1 at most, its noise norm (\S+) \(signal (\S+) over", refusal
    )
    assert numbers is not None
    one = describe_training(parse({"method": "fedavg", "privacy.unit": "client", "privacy.epsilon": 8.0}), MODEL, 12, 0)
    assert [float(number) for number in numbers.groups()] == pytest.approx([one.noise, one.signal], rel=0.05)
    words = (
        "use --method ridge, or --helpers 2 with about ",
        " homes, or about ",
        "privacy.accept-noise=true trains all",
    )
    assert [refusal.index(word) for word in words] == sorted(refusal.index(word) for word in words)


def test_helpers_alone_are_named_where_they_are_enough_and_not_where_they_are_there() -> None:
    many = 10_000
    assert "--helpers 2, or about " in checked(many)
    assert not checked(many, privacy__trust="helpers")
    assert "--helpers" not in checked(12, privacy__trust="helpers")


def test_a_task_without_a_closed_form_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--method ridge" in checked(12, task="sessions", method="fedga")
    assert "--method ridge" in checked(12, task="traffic", method="fedavg")
    monkeypatch.setitem(TASKS._loaded, "traffic", replace(TASKS["traffic"], closed_form=None))
    refusal = checked(12, task="traffic", method="fedavg")
    assert "ridge" not in refusal
    assert "; it needs --helpers 2 with about " in refusal
    assert "--helpers" not in checked(12, task="traffic", method="fedstl")


@pytest.mark.parametrize(
    "options",
    [
        {"privacy__accept-noise": True},
        {"privacy__unit": "record"},
        {"privacy__unit": "none"},
        {"method": "ridge"},
        {"method": "local"},
        {"task": "ratings"},
    ],
)
def test_runs_that_accept_noise_or_do_not_drown_in_it_are_not_refused(options: dict[str, Scalar]) -> None:
    assert not checked(12, **options)


def test_the_paper_s_ratings_model_drowns() -> None:
    assert checked(12, task="ratings", model="paper")


def test_an_unknown_number_of_clients_is_not_judged() -> None:
    assert not checked(0)


def test_numbers_of_an_upload_are_those_of_its_blocks() -> None:
    def numbers(method: str, summed: bool) -> int:
        return count_numbers(parse({"method": method, "task": "rules"}), MODEL, summed=summed)

    assert numbers("fedavg", False) == numbers("fedavg", True) == SIZE
    assert numbers("fedrule", False) == 2 * SIZE
    assert (numbers("fedga", False), numbers("fedga", True)) == (SIZE, 2 * SIZE)
    assert numbers("ifca", True) == 5 * numbers("ifca", False) == 5 * SIZE
    assert numbers("local", False) == 0


def test_groups_of_sums_and_releases_of_a_round_cost_signal() -> None:
    flat: dict[str, Scalar] = {"method": "fedavg", "privacy.unit": "client", "privacy.trust": "helpers"}
    one = describe_training(parse(flat), MODEL, 100, 2)
    three = describe_training(parse({**flat, "secure-sums.groups": 3}), MODEL, 100, 2)
    assert one.signal / three.signal == pytest.approx(math.sqrt(3 * math.pi / 2))
    assert describe_training(parse({"method": "ifca", "privacy.unit": "client"}), MODEL, 100, 0).releases == 2


def test_a_budget_is_spread_over_the_rounds_that_ask_a_client() -> None:
    assert [count_participations(20, 1.0), count_participations(20, 0.5), count_participations(20, 0.5, 3)] == [
        20,
        15,
        3,
    ]
    flat: dict[str, Scalar] = {
        "method": "uniform",
        "rounds": 20,
        "algorithm.uniform.rounds": 5,
        "privacy.unit": "client",
    }
    one = describe_training(parse(flat), MODEL, 100, 0)
    assert (one.rounds, one.participations) == (5, 5)
