"""pFedMe on quadratic clients, against its closed forms."""

import numpy as np
import pytest

from tests.support.toys import Toy, configured, flat, optimum, quadratics

LAM, RATE = 2.0, 1.0


def toy(count: int = 3, **options: float) -> Toy:
    """Return clients that solve for θ_i to convergence."""
    own = {"lam": LAM, "lr": 0.3, "local_steps": 14, "envelope_lr": RATE / LAM} | options
    return Toy(configured("pfedme", optimizer="sgd", **own), quadratics(count, seed=1))


def test_a_client_stores_its_proximal_point_and_sends_a_step_towards_it() -> None:
    federation = toy()
    for name, client in federation.clients.items():
        reply, w = federation.ask(name), federation.model
        point = np.linalg.solve(client.curvature + LAM * np.eye(4), client.curvature @ client.centre + LAM * w)
        stored = {n: t.numpy() for n, t in federation.stores[name].load("toy").groups["own.after"].items()}
        np.testing.assert_allclose(flat(stored), point, atol=1e-6)
        np.testing.assert_allclose(flat(reply.update), RATE * (w - point), atol=1e-6)


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_the_server_moves_by_beta_towards_the_mean(beta: float) -> None:
    federation = toy(beta=beta)
    before, sent = federation.model, [flat(federation.ask(name).update) for name in federation.clients]
    federation.round()
    np.testing.assert_allclose(federation.model, before - beta * np.mean(sent, axis=0))


def test_clients_with_unequal_steps_have_equal_weights() -> None:
    """Each reply is the solution of the client's problem, as close as its steps reach."""
    federation = toy()
    federation.steps = {"client-0": 5, "client-1": 14, "client-2": 40}
    before, sent = federation.model, [flat(federation.ask(name).update) for name in federation.clients]
    federation.round()
    np.testing.assert_allclose(federation.model, before - np.mean(sent, axis=0))


def test_it_converges_to_the_optimum_of_the_envelopes() -> None:
    federation = toy()
    for _ in range(70):
        federation.round()
    # ∇ of the envelope of client i is λ(λI + A_i)⁻¹A_i(w − c_i)
    curvatures = [
        LAM * np.linalg.solve(c.curvature + LAM * np.eye(4), c.curvature) for c in federation.clients.values()
    ]
    centers = [c.centre for c in federation.clients.values()]
    expected = np.linalg.solve(sum(curvatures), sum(a @ c for a, c in zip(curvatures, centers, strict=True)))
    np.testing.assert_allclose(federation.model, expected, atol=1e-4)
    assert np.abs(expected - optimum(federation.clients)).max() > 0.01, "it differs from FedAvg's optimum"
