"""Local steps against torch's own optimisers, and clipping."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from client.stacked_tensors import Tensors
from client.trainers.optimizers import Moments, build_step, clip, fresh_moments
from common.methods.fedavg import FedAvg

K = 3


def draw(seed: int) -> Tensors:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"encoder.w": (K, 4, 2), "predictor.b": (K, 5)}
    return {n: torch.randn(s, generator=generator, dtype=torch.float64) for n, s in shapes.items()}


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_steps_are_those_of_torch(rule: str) -> None:
    options = FedAvg(optimizer=rule, lr=0.02, lr_predictor=0.07)  # type: ignore[arg-type]
    ours, moments, step = draw(0), fresh_moments(options, draw(0)), build_step(options)
    theirs = {n: p.clone().requires_grad_() for n, p in ours.items()}
    groups = [{"params": [p], "lr": options.rate(n)} for n, p in theirs.items()]
    optimizer = (torch.optim.SGD if rule == "sgd" else torch.optim.Adam)(groups)
    for t in range(1, 8):
        gradient = draw(t)
        ours, moments = step(ours, gradient, moments)
        for n, p in theirs.items():
            p.grad = gradient[n].clone()
        optimizer.step()
        for n, p in theirs.items():
            torch.testing.assert_close(ours[n], p.detach(), rtol=1e-5, atol=1e-7)


def test_clients_of_different_age_each_correct_their_own_bias() -> None:
    options = FedAvg(optimizer="adam", lr=0.1)
    step, params, gradient = build_step(options), {"w": torch.zeros(2, 1)}, {"w": torch.ones(2, 1)}
    old = Moments(torch.tensor([0.0, 4.0]), {"w": torch.zeros(2, 1)}, {"w": torch.zeros(2, 1)})
    stepped, moments = step(params, gradient, old)
    assert moments.count.tolist() == [1, 5]
    second = 0.001 / (1 - 0.999**5)
    expected = [-0.1, -0.1 * 0.1 / (1 - 0.9**5) / second**0.5]
    assert stepped["w"].ravel().tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_a_step_changes_nothing_handed_in(rule: str) -> None:
    options = FedAvg(optimizer=rule)  # type: ignore[arg-type]
    params, gradient = draw(0), draw(1)
    moments = fresh_moments(options, params)
    build_step(options)(params, gradient, moments)
    assert all(torch.equal(params[n], draw(0)[n]) and torch.equal(gradient[n], draw(1)[n]) for n in params)
    assert moments.count.tolist() == [0] * K
    assert all(not m.any() for group in (moments.first, moments.second) for m in group.values())


@given(largest=st.floats(0.01, 100), size=st.floats(0, 1000))
def test_the_norm_of_all_arrays_together_is_bounded_per_client(largest: float, size: float) -> None:
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


def test_a_zero_gradient_stays_zero_and_0_clips_nothing() -> None:
    zero = {"w": torch.zeros(2, 3)}
    assert not clip(zero, 1.0)["w"].any()
    assert clip(draw(0), 0.0)["encoder.w"].equal(draw(0)["encoder.w"])
