"""FedGA through the real server step: special cases and diagnostics."""

import numpy as np
import pytest

from common.arrays import Arrays, sha256
from common.config.run import RunConfig
from common.options import Scalar
from common.wire.messages import TrainReply
from server.aggregation.optimizers import OptimizerState
from server.aggregation.replies import Reply, add_up
from server.compose import build_method
from server.round.method import RoundContext
from server.round.state import RunState
from tests.support.toys import Toy, configured, optimum, quadratics

MODEL: Arrays = {"items": np.zeros((6, 3), np.float32), "bias": np.ones(4, np.float32)}
SAME: dict[str, Scalar] = {"server_lr": 0.02, "tau": 1e-3, "weighting": "examples", "local_steps": 3}


def reply(name: str, seed: int, examples: int = 1, steps: int = 3) -> Reply:
    rng = np.random.default_rng(seed)
    update = {n: rng.normal(size=a.shape).astype(np.float32) for n, a in MODEL.items()}
    return Reply(name, float(examples), TrainReply(1, update, {}, 0.5, examples, steps))


REPLIES = [reply("ann", 1, 3), reply("bob", 2, 1, steps=2), reply("cyd", 3, 6, steps=1)]


def rounds(method: str, replies: list[Reply], count: int = 3, **options: Scalar) -> RunState:
    """Return the state after some rounds with the same replies."""
    federation = Toy(configured(method, **{**SAME, **options}), quadratics(1))
    state = RunState(0, MODEL)
    for _ in range(count):
        total, at = add_up(replies, federation.config.capabilities), RoundContext(federation.config, state)
        model, memory = federation.strategy.method.update(at, state.memory, state.model, total)
        state = state.next(model, memory, [r.client for r in replies])
    return state


def diagnose(config: RunConfig, memory: OptimizerState) -> dict[str, float]:
    """Return the diagnostics of a method after its step."""
    state = RunState(0, MODEL, memory)
    return build_method(config, state).diagnostics(RoundContext(config, state), memory)


def close(left: RunState, right: RunState) -> None:
    for name, a in left.model.items():
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, right.model[name], rtol=1e-5, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("method", ["fedadam", "fedga"])
def test_steps_shrink_by_the_cooldown(method: str) -> None:
    """Steps of three rounds with cooldown from the first one are 1, 2/3, 1/3 of the plain steps, with equal moments."""
    plain, cooled = (
        [rounds(method, REPLIES, count, rounds=3, cooldown=c).model for count in range(4)] for c in (0.0, 1.0)
    )
    for t, share in enumerate((1, 2 / 3, 1 / 3)):
        for name in MODEL:
            whole, part = (run[t + 1][name] - run[t][name] for run in (plain, cooled))
            np.testing.assert_allclose(part, share * whole, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("rule", "method"), [("adam", "fedadam"), ("yogi", "fedyogi")])
def test_without_dra_and_c_sme_it_is_fedadam_or_fedyogi(rule: str, method: str) -> None:
    """It holds for unequal numbers of local steps and unequal weights too."""
    close(rounds("fedga", REPLIES, second_moment=rule, dra=False), rounds(method, REPLIES))


def test_saturated_without_dra_on_growing_updates_is_fedadam() -> None:
    """From v₀ = τ² far below Δ̄², v stays in the first case."""
    close(rounds("fedga", REPLIES, dra=False), rounds("fedadam", REPLIES))


@pytest.mark.parametrize("rule", ["saturated", "ramp", "quadratic", "adam", "yogi"])
def test_dra_has_no_effect_on_a_single_client(rule: str) -> None:
    with_dra, without = (rounds("fedga", REPLIES[:1], second_moment=rule, dra=dra) for dra in (True, False))
    assert sha256(with_dra.model) == sha256(without.model)


def test_dra_shortens_steps_of_disagreeing_clients() -> None:
    with_dra, without = (rounds("fedga", REPLIES, count=1, dra=dra) for dra in (True, False))
    for name, start in MODEL.items():
        assert np.all(np.abs(with_dra.model[name] - start) <= np.abs(without.model[name] - start) + 1e-7)
    assert np.abs(with_dra.model["items"]).sum() < 0.95 * np.abs(without.model["items"]).sum()


def test_unchanged_rows_keep_their_v() -> None:
    def untouched(r: Reply) -> Reply:
        items = np.where(np.arange(6)[:, None] < 2, r.train.update["items"], 0).astype(np.float32)
        return Reply(r.client, r.weight, TrainReply(1, {**r.train.update, "items": items}, {}, 0.5, 1, r.train.steps))

    state = rounds("fedga", [untouched(r) for r in REPLIES])
    assert np.array_equal(state.model["items"][2:], MODEL["items"][2:])
    assert np.all(state.memory["v"]["items"][2:] == np.float32(SAME["tau"] ** 2))  # type: ignore[operator]


def test_zero_updates_do_not_change_the_model_in_every_rule() -> None:
    still = [Reply("ann", 1.0, TrainReply(1, {n: np.zeros_like(a) for n, a in MODEL.items()}, {}, 0.5, 1, 1))]
    for rule in ("saturated", "ramp", "quadratic", "adam", "yogi"):
        assert sha256(rounds("fedga", still, second_moment=rule).model) == sha256(MODEL)


def test_the_model_converges_near_the_optimum() -> None:
    """With one local step, the mean update is the gradient, and only the server's step size leaves a distance."""
    federation = Toy(configured("fedga", lr=0.2, server_lr=0.03, weighting="uniform"), quadratics(4))
    for _ in range(150):
        federation.round()
    assert federation.model == pytest.approx(optimum(federation.clients), abs=0.02)


@pytest.mark.parametrize("method", ["fedga", "fedadam", "fedyogi", "fedadagrad"])
def test_diagnostics_are_quantiles_of_the_step_sizes(method: str) -> None:
    """They are at most η/τ, at v = 0, and fall with v; methods without v have none."""
    state = rounds(method, REPLIES)
    rates = diagnose(configured(method, **SAME), state.memory)
    assert list(rates) == ["rate_p5", "rate_p25", "rate_p50", "rate_p75", "rate_p95"]
    assert 0 < rates["rate_p5"] < rates["rate_p50"] < rates["rate_p95"] <= 0.02 / 1e-3
    assert diagnose(configured("fedavg"), {}) == {}


def test_described_denominators_change_no_bit_and_are_reported() -> None:
    """Of clients that disagree, some parameters have |Δ̄| below Δ'."""
    described, plain = (rounds("fedga", REPLIES, diagnostics=on) for on in (True, False))
    assert sha256(described.model) == sha256(plain.model)
    numbers = diagnose(configured("fedga", diagnostics=True, **SAME), described.memory)
    assert 0 <= numbers["agreement_p5"] < numbers["agreement_p95"] <= 1
    assert numbers["case_1"] + numbers["case_2"] + numbers["case_3"] == pytest.approx(1)
    assert numbers["rate_p5"] > 0
