"""FedRule's invariants (algorithms.md §1.9), through the real client code and the real server step."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.fedrule import EQ3, ZERO, total, toy
from tests.support.toys import Toy, configured, flat, optimum, quadratic_model, quadratics


@pytest.mark.parametrize("control", ["eq3", "grad_mean"])
@pytest.mark.parametrize("lam", [0.3, 1.0, 1.7])
def test_deltas_sum_to_zero_with_full_cohorts(control: str, lam: float) -> None:
    federation = toy(control=control, lam=lam)
    for _ in range(5):
        federation.round()
        assert total(federation) == ZERO
    assert max(np.abs(federation.delta(name)).max() for name in federation.clients) > 0.1, (
        "deltas are not trivially zero"
    )


def test_weighted_deltas_sum_to_zero() -> None:
    clients = quadratics(4, examples=(1, 2, 3, 10))
    federation = Toy(configured("fedrule", **EQ3, weighting="examples"), clients)  # type: ignore[arg-type]
    for _ in range(4):
        federation.round()
    weighted = sum((c.examples * federation.delta(name) for name, c in clients.items()), np.zeros(4))
    assert weighted == ZERO
    assert np.abs(total(federation)).max() > 0.01, "the plain sum is not zero"


def test_weighted_clients_converge_to_the_optimum_of_the_weighted_loss() -> None:
    clients = quadratics(4, examples=(1, 2, 3, 10))
    federation = Toy(configured("fedrule", **EQ3, weighting="examples"), clients)  # type: ignore[arg-type]
    for _ in range(60):
        federation.round()
    assert federation.model == pytest.approx(optimum(clients), abs=1e-9)


def test_deltas_of_the_others_sum_to_zero_again_once_a_client_is_set_aside() -> None:
    federation = toy()
    for _ in range(3):
        federation.round()
    others = [name for name in federation.clients if name != (liar := max(federation.clients))]
    state = federation.strategy.state
    federation.strategy.state = replace(state, reply_memory=replace(state.reply_memory, allied=(liar,)))
    assert np.abs(sum(map(federation.delta, others), np.zeros(4))).max() > 0.01
    for _ in range(3):
        federation.round(others)
        assert sum(map(federation.delta, others), np.zeros(4)) == ZERO


@pytest.mark.parametrize("lam", [0.0, 1.0, 1.9])
@pytest.mark.parametrize("control", ["eq3", "grad_mean"])
def test_round_1_is_fedavg_for_any_lambda(lam: float, control: str) -> None:
    ours, fedavg = toy(lam=lam, control=control), Toy(configured("fedavg", lr=0.2, local_steps=3), quadratics(4))
    ours.round()
    fedavg.round()
    assert ours.model.tobytes() == fedavg.model.tobytes()


@pytest.mark.parametrize(
    ("control", "optimizer", "lr"), [("eq3", "sgd", 0.2), ("grad_mean", "sgd", 0.2), ("grad_mean", "adam", 0.05)]
)
def test_lambda_0_is_fedavg_in_every_round(control: str, optimizer: str, lr: float) -> None:
    ours = toy(lam=0.0, control=control, optimizer=optimizer, lr=lr)
    fedavg = Toy(configured("fedavg", optimizer=optimizer, lr=lr, local_steps=3), quadratics(4))
    for _ in range(4):
        ours.round()
        fedavg.round()
        assert ours.model.tobytes() == fedavg.model.tobytes()


def test_one_local_step_is_a_gradient_step_on_the_mean_loss() -> None:
    federation = toy(local_steps=1, lam=1.0)
    model = flat(quadratic_model())
    for _ in range(5):
        gradients = [
            c.gradient({"encoder.w": model[:2], "predictor.w": model[2:]}) for c in federation.clients.values()
        ]
        model = model - 0.2 * np.mean(gradients, axis=0)
        federation.round()
        assert federation.model == pytest.approx(model, abs=1e-12)


@pytest.mark.parametrize("lam", [0.5, 1.0])
def test_grad_mean_is_eq_3_under_sgd(lam: float) -> None:
    eq3, by_gradient = toy(lam=lam), toy(lam=lam, control="grad_mean")
    for _ in range(6):
        eq3.round()
        by_gradient.round()
        assert by_gradient.model == pytest.approx(eq3.model, abs=1e-12)
        for name in eq3.clients:
            assert by_gradient.delta(name) == pytest.approx(eq3.delta(name), abs=1e-10)


def test_lambda_1_delta_is_the_last_rounds_deviation() -> None:
    """§1.4: δ⁺ = (1−λ)δ + ḡ_k − mean ḡ, so at λ = 1, τ = 1 it is ∇L_k − mean ∇L at the round's model."""
    federation = toy(local_steps=1, lam=1.0)
    for _ in range(3):
        model = federation.strategy.state.model
        federation.round()
        gradients = {name: c.gradient(model) for name, c in federation.clients.items()}
        for name in federation.clients:
            expected = gradients[name] - np.mean(list(gradients.values()), axis=0)
            assert federation.delta(name) == pytest.approx(expected, abs=1e-12)


def test_equal_clients_keep_delta_zero() -> None:
    twin = quadratics(1)["client-0"]
    federation = Toy(configured("fedrule", **EQ3), {f"client-{k}": twin for k in range(3)})  # type: ignore[arg-type]
    for _ in range(3):
        federation.round()
        for name in federation.clients:
            assert federation.delta(name) == ZERO


def test_the_fixed_point_is_the_optimum_and_that_of_fedavg_is_not() -> None:
    ours, fedavg = toy(), Toy(configured("fedavg", lr=0.2, local_steps=3), quadratics(4))
    for _ in range(60):
        ours.round()
        fedavg.round()
    best = optimum(ours.clients)
    assert ours.model == pytest.approx(best, abs=1e-9)
    assert np.abs(fedavg.model - best).max() > 1e-2


@pytest.mark.parametrize("control", ["eq3", "grad_mean"])
def test_fewer_steps_of_a_client_do_not_change_the_optimum(control: str) -> None:
    federation = toy(control=control)
    federation.steps = {"client-0": 1, "client-1": 2}
    for _ in range(90):
        federation.round()
    assert total(federation) == pytest.approx(np.zeros(4), abs=1e-10)
    assert federation.model == pytest.approx(optimum(federation.clients), abs=1e-9)


def test_encoder_and_predictor_have_separate_lambda_and_eta() -> None:
    federation = toy(local_steps=1, lr=0.1, lr_predictor=0.3, lam=0.5, lam_predictor=1.5)
    federation.round()
    model, delta = federation.strategy.state.model, federation.delta("client-2")
    gradient = federation.clients["client-2"].gradient(model)
    update = flat(federation.ask("client-2").update)
    assert update[:2] == pytest.approx(0.1 * (gradient[:2] - 0.5 * delta[:2]), abs=1e-12)
    assert update[2:] == pytest.approx(0.3 * (gradient[2:] - 1.5 * delta[2:]), abs=1e-12)


def test_separate_lambda_and_eta_keep_the_sum() -> None:
    federation = toy(lr=0.1, lr_predictor=0.3, lam=0.5, lam_predictor=1.5)
    for _ in range(4):
        federation.round()
    assert total(federation) == ZERO


def test_adam_literal_is_eq_3_on_displacements_of_adam() -> None:
    federation = toy(optimizer="adam", control="adam_literal", lr=0.05, local_steps=2, moments="reset")
    replies = {name: flat(federation.ask(name).update) / (0.05 * 2) for name in sorted(federation.clients)}
    federation.round()
    mean = np.mean(list(replies.values()), axis=0)
    for name, d in replies.items():
        assert federation.delta(name) == pytest.approx(d - mean, abs=1e-12)


@pytest.mark.parametrize("control", ["eq3", "grad_mean"])
def test_deltas_of_all_clients_sum_to_zero_with_small_cohorts(control: str) -> None:
    federation, rng = toy(8, control=control), np.random.default_rng(0)
    names = sorted(federation.clients)
    for _ in range(12):
        federation.round(asked=rng.choice(names, size=3, replace=False).tolist())
        assert total(federation) == ZERO


def test_small_cohorts_converge_to_the_optimum() -> None:
    federation, rng = toy(6, local_steps=2), np.random.default_rng(1)
    names = sorted(federation.clients)
    for _ in range(60):
        federation.round(asked=rng.choice(names, size=3, replace=False).tolist())
    assert federation.model == pytest.approx(optimum(federation.clients), abs=1e-6)


def test_a_client_that_missed_rounds_uses_the_mean_of_its_last_round() -> None:
    federation = toy()
    federation.round()
    federation.round(asked=["client-0", "client-1"])
    federation.round(asked=["client-0", "client-1"])
    assert total(federation) == ZERO
    federation.round()
    assert total(federation) == ZERO
    assert sorted(federation.strategy.state.memory) == ["mean.4"], "unneeded means are removed"


def test_means_are_stored_while_a_client_needs_them() -> None:
    federation = toy()
    federation.round()
    federation.round(asked=["client-0", "client-1"])
    federation.round(asked=["client-0"])
    assert sorted(federation.strategy.state.memory) == ["mean.1", "mean.2", "mean.3"]
    federation.round(asked=["client-2", "client-3"])
    assert sorted(federation.strategy.state.memory) == ["mean.2", "mean.3", "mean.4"]


def test_a_reply_that_was_not_aggregated_does_not_change_delta() -> None:
    federation = toy()
    federation.round()
    before = federation.delta("client-3")
    federation.round(lost=["client-3"])
    assert federation.delta("client-3") == pytest.approx(before, abs=0)
    assert total(federation) == ZERO
    federation.round()
    assert total(federation) == ZERO


def test_a_lost_reply_of_the_first_round_does_not_change_delta() -> None:
    federation = toy()
    federation.round(lost=["client-3"])
    assert federation.delta("client-3") == ZERO
    assert total(federation) == ZERO
    federation.round()
    assert total(federation) == ZERO


def test_a_replayed_round_is_applied_once() -> None:
    once, twice = toy(), toy()
    for federation in (once, twice):
        federation.round()
        federation.round()
    first = twice.ask("client-1")
    again = twice.ask("client-1")
    np.testing.assert_array_equal(flat(first.update), flat(again.update))
    once.round()
    twice.round()
    assert twice.model.tobytes() == once.model.tobytes()
    assert total(twice) == ZERO
