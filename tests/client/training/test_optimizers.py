"""Local optimizer steps equal those of torch; clipping of gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from client.training.stacks import Tensors
from client.training.steps import Moments, build_step, clip, copy, initialize_moments
from common.methods.fedavg import FedAvg

K = 3


def draw(seed: int) -> Tensors:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"encoder.w": (K, 4, 2), "predictor.b": (K, 5)}
    return {n: torch.randn(s, generator=generator, dtype=torch.float64) for n, s in shapes.items()}


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_steps_equal_those_of_torch(rule: str) -> None:
    options = FedAvg(optimizer=rule, lr=0.02, lr_predictor=0.07)
    ours, moments, step = draw(0), initialize_moments(options, draw(0)), build_step(options)
    theirs = {n: p.clone().requires_grad_() for n, p in ours.items()}
    groups = [{"params": [p], "lr": options.rate(n)} for n, p in theirs.items()]
    optimizer = (torch.optim.SGD if rule == "sgd" else torch.optim.Adam)(groups)
    for t in range(1, 8):
        gradient = draw(t)
        step(ours, gradient, moments)
        for n, p in theirs.items():
            p.grad = gradient[n].clone()
        optimizer.step()
        for n, p in theirs.items():
            torch.testing.assert_close(ours[n], p.detach(), rtol=1e-5, atol=1e-7)


def test_clients_with_different_step_counts_have_separate_bias_corrections() -> None:
    options = FedAvg(optimizer="adam", lr=0.1)
    step, params, gradient = build_step(options), {"w": torch.zeros(2, 1)}, {"w": torch.ones(2, 1)}
    old = Moments(torch.tensor([0.0, 4.0]), {"w": torch.zeros(2, 1)}, {"w": torch.zeros(2, 1)})
    step(params, gradient, old)
    assert old.count.tolist() == [1, 5]
    second = 0.001 / (1 - 0.999**5)
    expected = [-0.1, -0.1 * 0.1 / (1 - 0.9**5) / second**0.5]
    assert params["w"].ravel().tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_a_step_changes_neither_its_direction_nor_what_has_none(rule: str) -> None:
    options = FedAvg(optimizer=rule)  # type: ignore[arg-type]
    params, gradient = draw(0), draw(1)
    moments = initialize_moments(options, params)
    build_step(options)(params, {"encoder.w": gradient["encoder.w"]}, moments)
    assert torch.equal(gradient["encoder.w"], draw(1)["encoder.w"])
    assert torch.equal(params["predictor.b"], draw(0)["predictor.b"])
    assert not any(group["predictor.b"].any() for group in (moments.first, moments.second) if group)


def test_a_client_steps_alike_alone_and_among_others_whatever_the_order_of_their_numbers_in_memory() -> None:
    options, params, gradient = FedAvg(optimizer="adam", lr=0.02), draw(0), draw(1)
    alone = [copy({n: p[k : k + 1] for n, p in params.items()}) for k in range(K)]
    step, moments = build_step(options), initialize_moments(options, params)
    single = [initialize_moments(options, own) for own in alone]
    turned = {n: g.transpose(0, 1).contiguous().transpose(0, 1) for n, g in gradient.items()}
    for _ in range(3):
        step(params, turned, moments)
        for k, own in enumerate(alone):
            step(own, {n: g[k : k + 1] for n, g in gradient.items()}, single[k])
    for k, own in enumerate(alone):
        for n, p in own.items():
            torch.testing.assert_close(params[n][k : k + 1], p)
            torch.testing.assert_close(moments.second[n][k : k + 1], single[k].second[n])


@given(largest=st.floats(0.01, 100), size=st.floats(0, 1000))
def test_the_norm_over_all_arrays_is_bounded_per_client(largest: float, size: float) -> None:
    gradient = {n: size * g for n, g in draw(2).items()}
    clipped = clip(gradient, largest)
    for k in range(K):
        before = torch.cat([g[k].flatten() for g in gradient.values()])
        after = torch.cat([g[k].flatten() for g in clipped.values()])
        assert after.norm() <= largest * (1 + 1e-9)
        if before.norm() <= largest:
            torch.testing.assert_close(after, before)
        else:
            torch.testing.assert_close(after, before * (largest / before.norm()))


def test_a_zero_gradient_stays_zero_and_0_means_no_clipping() -> None:
    zero = {"w": torch.zeros(2, 3)}
    assert not clip(zero, 1.0)["w"].any()
    assert clip(draw(0), 0.0)["encoder.w"].equal(draw(0)["encoder.w"])
