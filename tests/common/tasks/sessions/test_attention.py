"""Target attention: independence of the chunk size; gradients against finite differences."""

import math

import pytest
import torch
from torch import Tensor

from common.tasks.sessions import model as session_attention
from common.tasks.sessions.model import softmax_by_session, target_scores

OWNERS = torch.tensor([1, 1, 1, 1, 2, 2, 0, 3, 0])
"""Four clicks, two and one, of the first three of four sessions, and padding."""


def attention_case() -> tuple[Tensor, ...]:
    """Return candidates, keys and values."""
    generator = torch.Generator().manual_seed(5)
    e = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    keys, values = torch.randn(2, len(OWNERS), 3, generator=generator, dtype=torch.float64)
    return e, keys, values


def test_scores_are_those_of_each_session_alone() -> None:
    e, keys, values = attention_case()
    scores = target_scores(e, keys, values, OWNERS, 4)
    for session in range(1, 5):
        in_session = torch.eq(OWNERS, session)
        beta = torch.softmax(keys[in_session] @ e.T, dim=0)
        torch.testing.assert_close(scores[session - 1], (beta * (values[in_session] @ e.T)).sum(0))


def test_attention_in_chunks_is_attention_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [t.requires_grad_() for t in attention_case()]

    def results() -> tuple[Tensor, ...]:
        scores = target_scores(tensors[0], tensors[1], tensors[2], OWNERS, 4)
        return scores.detach(), *torch.autograd.grad(scores.square().sum(), tensors)

    at_once = results()
    monkeypatch.setattr(session_attention, "CHUNK_SCORES", 2 * OWNERS.numel())  # two candidates a chunk
    for chunked, whole in zip(results(), at_once, strict=True):
        torch.testing.assert_close(chunked, whole)


def test_gradients_of_attention_are_its_finite_differences() -> None:
    inputs = tuple(t.requires_grad_() for t in attention_case())
    assert torch.autograd.gradcheck(lambda *tensors: target_scores(*tensors, OWNERS, 4), inputs)
    assert (target_scores(*inputs, OWNERS, 4)[3] == 0).all()


def test_softmax_by_session_bears_large_scores_and_ignores_padding() -> None:
    scores = torch.tensor([[1e4], [1e4 + 1], [-1e4], [7e7]])
    softmax = softmax_by_session(scores, torch.tensor([1, 1, 2, 0]), 3).squeeze(1)
    torch.testing.assert_close(softmax, torch.tensor([1 / (1 + math.e), math.e / (1 + math.e), 1.0, 0.0]))
