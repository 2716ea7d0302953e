"""Sessions learner: objective, sessions of the blend, and metrics."""

import numpy as np
import pytest
import torch
from torch.func import grad

from client.privacy.dp_sgd import CHUNK, DpSgdNoise, private_gradient, sample_private_inputs
from client.tasks.sessions.data.visitors import Case, Visitor, as_clicks
from client.tasks.sessions.learner import SessionsLearner
from client.training.stacks import Tensors, row, stack
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters, tensors
from common.options import Scalar
from common.tasks.sessions.vocabulary import Items
from common.wire.messages import TrainRequest
from tests.support.build import learner_of

ITEMS = Items(items=tuple("abcdefg"))
SESSIONS = tuple(as_clicks(list(session)) for session in ([0, 1, 2], [0, 1, 3, 1], [4, 5], [5, 6, 5], [2, 0]))
HELD = (Case(as_clicks([0]), 1), Case(as_clicks([6, 5]), 4))
VISITORS = (Visitor("ann", SESSIONS[:3], HELD[:1]), Visitor("bob", SESSIONS[3:], HELD[1:]))


def build_config(model: str = "default", **options: Scalar) -> RunConfig:
    sessions = {f"tasks.sessions.{key.replace('_', '-')}": value for key, value in options.items()}
    return parse({"method": "fedga", "task": "sessions", "model": model, "tasks.sessions.hidden": 4, **sessions})


def learner(model: str = "default", visitors: tuple[Visitor, ...] = VISITORS, **options: Scalar) -> SessionsLearner:
    return learner_of(build_config(model, **options), ITEMS, visitors)


def request(of: SessionsLearner, statics: Arrays | None = None) -> TrainRequest:
    return TrainRequest(1, "toy:0", parameters(of.module), statics=statics or {})


def gradients(of: SessionsLearner, batch: Tensors) -> Tensors:
    return grad(of.loss)(tensors(parameters(of.module)), batch, {})


@pytest.mark.parametrize("network", ["srgnn", "tagnn", "tagnn_concat"])
def test_the_paper_s_loss_is_the_mean_cross_entropy_of_the_next_item(network: str) -> None:
    of = learner("paper", network=network)
    batch = of.batch(request(of))
    assert of.examples == sum(len(session) - 1 for session in SESSIONS) == len(batch["target"])
    params = tensors(parameters(of.module))
    by_hand = []
    for session in SESSIONS:
        for end in range(1, len(session)):
            logits = torch.from_numpy(of.next_items(parameters(of.module), {}, session[:end], ()))
            by_hand.append(float(torch.logsumexp(logits, 0) - logits[session[end]]))
    assert float(of.loss(params, batch, {})) == pytest.approx(np.mean(by_hand), rel=1e-5)


def test_rows_that_pad_a_client_to_a_larger_one_weigh_nothing() -> None:
    of = learner("paper")
    batch = of.batch(request(of))
    larger = {name: torch.zeros_like(torch.cat([t, t], dim=-1 if name == "edges" else 0)) for name, t in batch.items()}
    padded = row(stack([batch, larger]), 0)
    params = tensors(parameters(of.module))
    torch.testing.assert_close(of.loss(params, padded, {}), of.loss(params, batch, {}))


def test_the_network_and_its_blend_learn_from_different_sessions() -> None:
    of = learner(blend_share=0.5)
    batch = of.batch(request(of))
    assert 0 < batch["blends"].sum() < of.examples
    only_blend = gradients(of, {**batch, "weights": batch["blends"]})
    assert all(not g.any() for name, g in only_blend.items() if name.startswith("network."))
    assert only_blend["weight"].any()
    assert only_blend["scale"].any()
    only_network = gradients(of, {**batch, "weights": 1 - batch["blends"]})
    assert not only_network["weight"].any()
    assert only_network["network.embedding.weight"].any()


def test_the_sessions_of_the_blend_do_not_depend_on_other_visitors() -> None:
    separate = torch.cat([learner(visitors=(v,)).batch(request(learner()))["blends"] for v in VISITORS])
    torch.testing.assert_close(learner().batch(request(learner()))["blends"], separate)


def test_evaluation_is_over_the_held_out_cases() -> None:
    of = learner()
    metrics, weights = of.evaluate(parameters(of.module), {}, "test")
    assert set(metrics) == {"loss", "hr10", "hr20", "mrr10", "mrr20", "ndcg20"}
    assert set(weights.values()) == {2.0}
    assert metrics["hr10"] == 1.0, "there are seven items only"
    losses = []
    for visitor, case in zip(VISITORS, HELD, strict=True):
        logits = torch.from_numpy(of.next_items(parameters(of.module), {}, case.prefix, visitor.sessions))
        losses.append(float(torch.logsumexp(logits, 0) - logits[case.target]))
    assert metrics["loss"] == pytest.approx(np.mean(losses), rel=1e-5)


def test_nothing_held_out_no_metrics() -> None:
    assert learner().evaluate(parameters(learner().module), {}, "validation") == ({}, {})


def test_a_client_without_sessions_has_no_examples() -> None:
    empty = learner(visitors=(Visitor("cyd", ()),))
    assert empty.examples == 0
    assert torch.isfinite(empty.loss(tensors(parameters(empty.module)), empty.batch(request(empty)), {}))


def record_learner(visitors: tuple[Visitor, ...] = VISITORS) -> SessionsLearner:
    """Return a learner with sessions as records of DP-SGD."""
    flat = {"method": "fedga", "task": "sessions", "model": "paper", "tasks.sessions.hidden": 4}
    return learner_of(parse({**flat, "privacy.unit": "record"}), ITEMS, visitors)


def private(of: SessionsLearner, *, clip: float) -> Tensors:
    """Return the gradient of one step on all records, with noise of multiplier 1e-12."""
    params, generator = tensors(parameters(of.module)), np.random.default_rng(0)
    inputs = sample_private_inputs(params, of.rows, of.examples, 1, DpSgdNoise(clip, 1e-12, 1.0, lambda: generator))
    gradient, _ = private_gradient(of.loss, of.shared)(params, of.batch(request(of)), row(inputs, 0))
    return gradient


def test_each_session_is_a_record_that_dp_sgd_clips_by_itself() -> None:
    of = record_learner()
    assert (of.rows, of.examples) == (len(SESSIONS), len(SESSIONS))
    single = [record_learner((Visitor("x", (session,), ()),)) for session in SESSIONS]
    per_record = [gradients(learner, learner.batch(request(learner))) for learner in single]
    norms = [float(torch.cat([g.flatten() for g in grads.values()]).norm()) for grads in per_record]
    clip = sorted(norms)[2]
    for largest in (1e6, clip):
        factors = [min(1.0, largest / norm) for norm in norms]
        for name, gradient in private(of, clip=largest).items():
            expected = sum(f * grads[name] for f, grads in zip(factors, per_record, strict=True)) / len(SESSIONS)
            np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-6, err_msg=name)
    whole = gradients(of, of.batch(request(of)))
    for name, gradient in private(of, clip=1e6).items():
        np.testing.assert_allclose(gradient, whole[name], rtol=1e-3, atol=1e-6)


def test_records_beyond_the_chunk_size_count_as_well() -> None:
    many = tuple(as_clicks([k % 7, (k + 1 + k // 7) % 7]) for k in range(2 * CHUNK + 3))
    of = record_learner((Visitor("shop", many, ()),))
    for name, gradient in private(of, clip=1e6).items():
        np.testing.assert_allclose(gradient, gradients(of, of.batch(request(of)))[name], rtol=1e-3, atol=1e-6)


def test_a_client_without_sessions_takes_part_with_noise_alone() -> None:
    assert all(
        float(g.abs().max()) < 1e-9 for g in private(record_learner((Visitor("nobody", (), ()),)), clip=1.0).values()
    )
