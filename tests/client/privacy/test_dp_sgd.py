"""DP-SGD's gradient: clipped record by record, noise added once, the same alone as in a cohort."""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from opacus.grad_sample import GradSampleModule
from scipy.stats import beta
from torch import Tensor, nn
from torch.func import grad_and_value, vmap

from client.privacy.dp_sgd import (
    JOINS,
    DpSgdNoise,
    opacus_gradient,
    private_gradient,
    sample_exact_inputs,
    sample_private_inputs,
)
from client.training.stacks import Tensors
from client.training.steps import one_gradient
from common.models import parameters, tensors
from common.privacy.grid import steps_of
from common.wire.messages import TrainRequest
from tests.support.accountants import epsilon_rdp
from tests.support.build import learner_of
from tests.support.toys import CATALOGUE, configured, toy_homes


def squares(params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
    """Half the mean squared distance between the parameters, scaled in public, and each record."""
    return (batch["scale"] * params["w"] - batch["x"]).square().sum(-1).mean() / 2


def asked(
    x: Tensor, *, clip: float = 1.0, multiplier: float = 1e-9, sample: float = 1.0, seed: int = 0, steps: int = 1
) -> tuple[Tensors, Tensors, Tensors]:
    params, rng = {"w": torch.zeros(x.shape[1])}, np.random.default_rng(seed)
    noise = sample_private_inputs(params, len(x), len(x), steps, DpSgdNoise(clip, multiplier, sample, lambda: rng))
    return params, {"x": x, "scale": torch.tensor(1.0)}, noise


def step(noise: Tensors, t: int) -> Tensors:
    return {name: each[t] for name, each in noise.items()}


GRADIENT = private_gradient(squares, {"scale"})


def test_each_record_is_clipped_by_itself() -> None:
    """At w = 0 a record's gradient is −x."""
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    params, batch, noise = asked(x)
    gradient, value = GRADIENT(params, batch, step(noise, 0))
    np.testing.assert_allclose(gradient["w"], [-0.9 / 3, -1.2 / 3], rtol=1e-4)
    assert value == pytest.approx((25 + 0.25) / 6)


@given(st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_adding_a_record_moves_the_sum_by_no_more_than_the_clip(seed: int, clip: float) -> None:
    rng = np.random.default_rng(seed)
    x = torch.from_numpy((rng.standard_normal((6, 3)) * 10.0 ** rng.integers(-3, 4, (6, 1))).astype(np.float32))
    params, batch, noise = asked(x, clip=clip, multiplier=1.0)
    without = {**step(noise, 0), JOINS: torch.tensor([True] * 5 + [False])}
    one, _ = GRADIENT(params, batch, step(noise, 0))
    other, _ = GRADIENT(params, batch, without)
    assert 6 * float((one["w"] - other["w"]).norm()) <= clip * (1 + 1e-4)


def test_with_a_large_clip_and_no_noise_it_is_the_plain_gradient_of_the_rules_task() -> None:
    learner = learner_of(configured("fedavg"), CATALOGUE, toy_homes(7))
    params, batch = tensors(parameters(learner.module)), learner.batch(TrainRequest(1, "", {}))
    masks = learner.step_inputs(1, torch.Generator().manual_seed(0))
    rng = np.random.default_rng(0)
    noise = sample_private_inputs(params, 7, learner.examples, 1, DpSgdNoise(1e6, 1e-15, 1.0, lambda: rng))
    plain, loss = grad_and_value(learner.loss)(params, batch, step(masks, 0))
    private, value = private_gradient(learner.loss, set())(params, batch, step({**masks, **noise}, 0))
    assert float(value) == pytest.approx(float(loss), rel=1e-5)
    for name, expected in plain.items():
        np.testing.assert_allclose(private[name], expected, rtol=1e-3, atol=1e-6)


def test_clipped_sums_are_those_of_opacus() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    module = GradSampleModule(copy.deepcopy(plain), loss_reduction="sum")
    x, y = torch.randn(9, 4, requires_grad=True), torch.randn(9, 1)
    torch.autograd.backward((module(x) - y).square().sum())
    each = {name.removeprefix("_module."): p.grad_sample for name, p in module.named_parameters()}
    norms = torch.stack([g.flatten(1).square().sum(1) for g in each.values()]).sum(0).sqrt()
    clip = float(norms.median())
    factors = (clip / norms).clamp(max=1)
    expected = {n: torch.einsum("i,i...->...", factors, g) / 9 for n, g in each.items()}

    def loss(params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
        out: Tensor = torch.func.functional_call(plain, params, (batch["x"],))
        return (out - batch["y"]).square().sum(-1).mean()

    params = {n: p.detach() for n, p in plain.named_parameters()}
    rng = np.random.default_rng(0)
    noise = sample_private_inputs(params, 9, 9, 1, DpSgdNoise(clip, 1e-12, 1.0, lambda: rng))
    found, _ = private_gradient(loss)(params, {"x": x.detach(), "y": y}, step(noise, 0))
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient.detach(), rtol=1e-3, atol=1e-6)


def test_noise_has_the_standard_deviation_zc_over_qn() -> None:
    x = torch.zeros(10, 50)
    params, batch, noise = asked(x, clip=0.5, multiplier=3.0, sample=0.4, steps=400)
    gradients = torch.stack([GRADIENT(params, batch, step(noise, t))[0]["w"] for t in range(400)])
    assert float(gradients.std()) == pytest.approx(3.0 * 0.5 / (0.4 * 10), rel=0.03)


def test_records_join_by_themselves_with_probability_q() -> None:
    *_, noise = asked(torch.zeros(200, 1), sample=0.3, steps=100)
    joins = noise[JOINS].double().numpy()
    assert joins.mean() == pytest.approx(0.3, abs=0.01)
    assert joins.sum(1).var() == pytest.approx(200 * 0.3 * 0.7, rel=0.4), "not a fixed number of them"


def test_an_empty_batch_is_noise_alone() -> None:
    params, batch, noise = asked(torch.ones(4, 3), multiplier=1.0)
    empty = {**step(noise, 0), JOINS: torch.zeros(4, dtype=torch.bool)}
    gradient, _ = GRADIENT(params, batch, empty)
    np.testing.assert_allclose(gradient["w"], empty["dp.gaussian/w"] / 4)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf, 3e38])
def test_a_record_without_a_finite_gradient_counts_as_zero(broken: float) -> None:
    params, batch, noise = asked(torch.tensor([[1.0, 0.0], [broken, 0.0]]))
    gradient, _ = GRADIENT(params, batch, step(noise, 0))
    np.testing.assert_allclose(gradient["w"], [-0.5, 0.0], rtol=1e-4, atol=1e-6)


def test_a_cohort_is_its_members_side_by_side() -> None:
    """Each with its own clip, multiplier and number of records; shorter ones padded with rows that do not join."""
    rng = np.random.default_rng(0)
    xs = [torch.from_numpy(rng.standard_normal((n, 2)).astype(np.float32)) for n in (5, 3)]
    alone = [
        asked(x, clip=c, multiplier=1.0, sample=0.7, seed=k) for k, (x, c) in enumerate(zip(xs, (0.5, 2), strict=True))
    ]
    padded = [{**batch, "x": torch.cat([batch["x"], torch.zeros(5 - len(batch["x"]), 2)])} for _, batch, _ in alone]
    noises = [step(noise, 0) for *_, noise in alone]
    wider = [{**n, JOINS: torch.cat([n[JOINS], torch.zeros(5 - len(n[JOINS]), dtype=torch.bool)])} for n in noises]

    def stacked(members: list[Tensors]) -> Tensors:
        return {name: torch.stack([m[name] for m in members]) for name in members[0]}

    together, _ = vmap(GRADIENT)(stacked([p for p, *_ in alone]), stacked(padded), stacked(wider))
    for k, (params, batch, _) in enumerate(alone):
        np.testing.assert_allclose(together["w"][k], GRADIENT(params, batch, noises[k])[0]["w"], rtol=1e-5, atol=1e-7)


def refuted(multiplier: float, claimed: float) -> bool:
    """Whether an audit at 95 % refutes ε: a canary record in or out, guessed from the gradient (Clopper-Pearson)."""
    trials, delta = 8_000, 1e-5
    x = torch.cat([torch.zeros(5, 1), torch.tensor([[-9.0]])])
    params, batch, noise = asked(x, multiplier=multiplier, steps=2 * trials)
    noise[JOINS][trials:, 5] = False
    outcomes = vmap(GRADIENT, in_dims=(None, None, 0))(params, batch, noise)[0]["w"].flatten()
    present, absent = outcomes[:trials], outcomes[trials:]
    for cut in torch.quantile(outcomes, torch.linspace(0.05, 0.95, 19)):
        hits, alarms = int((present > cut).sum()), int((absent > cut).sum())
        low = beta.ppf(0.025, hits, trials - hits + 1) if hits else 0.0
        high = beta.ppf(0.975, alarms + 1, trials - alarms) if alarms < trials else 1.0
        if low > delta and math.log((low - delta) / high) > claimed:
            return True
    return False


def test_an_audit_does_not_refute_the_claim_and_refutes_a_step_without_its_noise() -> None:
    claimed = epsilon_rdp(2.0, 1.0, 1, 1e-5)
    assert not refuted(2.0, claimed)
    assert refuted(0.05, claimed)


def exact(x: Tensor, multiplier: float, steps: int = 1, sample: float = 1.0) -> Tensors:
    rng = np.random.default_rng(0)
    return sample_exact_inputs({}, len(x), len(x), steps, DpSgdNoise(0.7, multiplier, sample, lambda: rng))


OPACUS = opacus_gradient(one_gradient(lambda params, batch, inputs: squares(params, batch, inputs)), {"scale"})


@pytest.mark.parametrize("joined", [0, 1, 150])
def test_a_networks_gradient_by_opacus_is_that_of_our_own_steps(joined: int) -> None:
    x = torch.randn(150, 3, generator=torch.Generator().manual_seed(1))
    params, batch, plain = asked(x, clip=0.7, multiplier=1e-12)
    params["w"] += 0.1
    joins = torch.arange(150) < joined
    ours, loss = GRADIENT(params, batch, {**step(plain, 0), JOINS: joins})
    theirs, value = OPACUS(params, batch, {**step(exact(x, 1e-12), 0), JOINS: joins})
    torch.testing.assert_close(theirs["w"], ours["w"], rtol=2e-5, atol=1e-7)
    assert joined < 150 or float(value) == pytest.approx(float(loss))


def test_a_record_that_is_not_finite_counts_as_zero_for_opacus_too() -> None:
    x = torch.tensor([[1.0, 2.0], [math.nan, 0.0]])
    params, batch, _ = asked(x)
    alone, _ = OPACUS(params, batch, {**step(exact(x, 1e-12), 0), JOINS: torch.tensor([True, False])})
    both, _ = OPACUS(params, batch, step(exact(x, 1e-12), 0))
    torch.testing.assert_close(both["w"], alone["w"])


def test_exact_noise_is_on_a_grid_with_at_least_the_standard_deviation_zc() -> None:
    x = torch.zeros(10, 50)
    params, batch, noise = asked(x)[0], asked(x)[1], exact(x, 3.0, steps=200, sample=0.4)
    gradients = torch.stack([OPACUS(params, batch, step(noise, t))[0]["w"] for t in range(200)])
    assert float(gradients.std()) == pytest.approx(3.0 * 0.7 / (0.4 * 10), rel=0.03)
    steps = gradients.double() * (0.4 * 10) / (0.7 / steps_of(3.0, 50))
    torch.testing.assert_close(steps, steps.round(), rtol=1e-6, atol=0.0)
    assert len(noise["dp.key"].unique(dim=0)) == 200
