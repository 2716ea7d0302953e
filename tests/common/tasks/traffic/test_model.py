"""Forecasters: shapes, stacked clients, readings of each step, and the default's initial forecast."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from common.tasks.traffic.model import Recurrent, build_forecaster, causal_mask, sinusoids
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import SensorVariables
from tests.support.build import head_of, task_model
from tests.support.sensors import road_config

NETWORKS = ("rnn", "gru", "lstm", "transformer")
RECURRENT = NETWORKS[:3]
LIBRARY = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
every_network = pytest.mark.parametrize("network", NETWORKS)
every_cell = pytest.mark.parametrize("network", RECURRENT)


def forecaster(
    network: str, paper: bool = True, variables: int = 1, history: int = 9, horizon: int = 4, **more: object
) -> nn.Module:
    torch.manual_seed(0)
    options = TrafficOptions.model_validate(
        {"network": network, "history": history, "horizon": horizon, "hidden": 3, **more}
    )
    return build_forecaster(variables, options, paper=paper)


def history(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@every_network
@pytest.mark.parametrize("variables", [1, 3])
@pytest.mark.parametrize(("length", "horizon"), [(9, 4), (4, 4), (5, 1)])
def test_from_a_history_a_forecast(network: str, variables: int, length: int, horizon: int) -> None:
    for paper in (True, False):
        model = forecaster(network, paper, variables, length, horizon)
        assert model(history(5, length, variables)).shape == (5, horizon, variables)
        assert model(history(0, length, variables)).shape == (0, horizon, variables)


@every_network
def test_windows_are_independent(network: str) -> None:
    model, windows = forecaster(network), history(5, 9, 1)
    alone = torch.cat([model(window.unsqueeze(0)) for window in windows])
    torch.testing.assert_close(model(windows), alone)


@every_network
@pytest.mark.parametrize("paper", [True, False])
def test_clients_under_vmap_equal_single_clients(network: str, paper: bool) -> None:
    model, windows = forecaster(network, paper, variables=2), history(3, 5, 9, 2)
    clients = [{n: p.detach() + 0.1 * history(*p.shape, seed=k) for n, p in model.named_parameters()} for k in range(3)]
    stacked = {n: torch.stack([client[n] for client in clients]) for n in clients[0]}

    def loss(params: dict[str, Tensor], x: Tensor) -> Tensor:
        return (functional_call(model, params, (x,)) - 1).square().sum()

    together, losses = vmap(grad_and_value(loss))(stacked, windows)
    for k, client in enumerate(clients):
        alone, value = grad_and_value(loss)(client, windows[k])
        torch.testing.assert_close(losses[k], value)
        for n, g in alone.items():
            torch.testing.assert_close(together[n][k], g, rtol=1e-4, atol=1e-4)


@every_cell
def test_the_cells_are_the_library_s_two_layers_over_the_slices(network: str) -> None:
    model = forecaster(network, variables=2)
    assert isinstance(model, Recurrent)
    oracle = LIBRARY[network](10, 3, num_layers=2, batch_first=True)
    for layer, cell in enumerate((model.lower, model.upper)):
        for name, p in cell.named_parameters():
            oracle.get_parameter(f"{name}_l{layer}").data = p.data
    windows = history(6, 9, 2)
    slices = torch.stack([windows[:, t + 1 : t + 6].transpose(1, 2).flatten(1) for t in range(4)], dim=1)
    torch.testing.assert_close(model(windows), model.head(oracle(slices)[0]))


@every_cell
@pytest.mark.parametrize(("slice_", "first", "last"), [("yesterday", 1, 96), ("paper", 0, 95)])
def test_step_t_reads_yesterdays_same_hour_or_under_the_paper_only_the_hours_before_it(
    network: str, slice_: str, first: int, last: int
) -> None:
    """Check hour 96 + t of 120, the same hour of yesterday; the state carries earlier steps."""
    model = forecaster(network, history=120, horizon=24, slice=slice_)
    for t in (0, 1, 23):
        window = history(1, 120, 1).requires_grad_()
        (seen,) = torch.autograd.grad(model(window)[0, t, 0], window)
        places = seen[0, :, 0].nonzero().flatten().tolist()
        assert places == list(range(first, last + t + 1))


@every_cell
def test_with_latest_every_step_reads_the_whole_history(network: str) -> None:
    model = forecaster(network, history=12, horizon=4, slice="latest", variables=2)
    windows = history(3, 12, 2)
    assert model(windows).shape == (3, 4, 2)
    for t in (0, 3):
        window = windows[:1].clone().requires_grad_()
        (seen,) = torch.autograd.grad(model(window)[0, t].sum(), window)
        assert bool(seen.any(dim=(0, 2)).all())


def test_slices_are_the_same_where_history_and_horizon_are_equally_long() -> None:
    windows = history(2, 4, 1)
    yesterday, paper = (forecaster("gru", history=4, horizon=4, slice=kind)(windows) for kind in ("yesterday", "paper"))
    assert torch.equal(yesterday, paper)


def test_the_transformers_decoder_does_not_look_ahead() -> None:
    """Check that step t depends on the encoded history and on decoder inputs up to t."""
    model, windows = forecaster("transformer"), history(2, 9, 1)
    places, mask = sinusoids(9), causal_mask(4)
    recent = model.decoder_input(windows[:, -4:]) + places[-4:]
    encoded = model.encoder_input(windows) + places
    before = model.linear_mapping(model.head(encoded, recent, tgt_mask=mask))
    torch.testing.assert_close(model(windows), before)
    recent = torch.cat([recent[:, :2], recent[:, 2:] + 1], dim=1)
    after = model.linear_mapping(model.head(encoded, recent, tgt_mask=mask))
    torch.testing.assert_close(after[:, :2], before[:, :2])
    assert not torch.allclose(after[:, 2:], before[:, 2:])


@every_network
def test_the_default_starts_at_the_profile_and_can_leave_it(network: str) -> None:
    """Check an initial residual of 0; the linear map and the scale move first, then the network."""
    model = forecaster(network, paper=False)
    forecast = model(history(5, 9, 1))
    assert not forecast.any()
    names, params = zip(*model.named_parameters(), strict=True)
    moved = dict(zip(names, torch.autograd.grad((forecast - 1).square().mean(), params), strict=True))
    assert {name for name, g in moved.items() if g.any()} == {"linear.weight", "linear.bias", "scale"}


@every_network
def test_the_default_is_the_linear_map_plus_a_scaled_network(network: str) -> None:
    model, windows = forecaster(network, paper=False), history(5, 9, 1)
    with torch.no_grad():
        model.scale.fill_(0.5)
        model.linear.weight.normal_()
        model.linear.bias.normal_()
    by_hand = windows[..., 0] @ model.linear.weight.T + model.linear.bias
    torch.testing.assert_close(model(windows)[..., 0], by_hand + 0.5 * model.network(windows)[..., 0])


@every_network
def test_the_head_is_the_dense_layer_or_the_blocks(network: str) -> None:
    """Check §3.7: cells are shared, the last layer is private; the transformer shares its linear maps."""
    shared = {"encoder_input", "decoder_input", "linear_mapping"} if network == "transformer" else {"lower", "upper"}
    for paper in (True, False):
        names = {name for name, _ in forecaster(network, paper).named_parameters()}
        rest = {name.removeprefix("network.").partition(".")[0] for name in names - head_of("traffic", names)}
        assert rest == shared | (set() if paper else {"linear", "scale"})
        assert {name.removeprefix("network.").partition(".")[0] for name in head_of("traffic", names)} == {"head"}


def test_the_heads_of_the_other_tasks() -> None:
    assert head_of("rules", ["predictor.w", "encoder.w"]) == {"predictor.w"}
    assert head_of("sessions", ["scale", "weight", "network.embedding.weight"]) == {"scale", "weight"}
    assert head_of("sessions", ["embedding.weight"]) == frozenset()


def test_the_seed_draws_the_model_and_variables_size_it() -> None:
    two = SensorVariables(variables=("volume", "speed"))
    first, again, other = (
        dict(task_model(road_config(model="paper", seed=seed), two).named_parameters()) for seed in (0, 0, 1)
    )
    assert first["head.weight"].shape == (2, 2)
    assert all(torch.equal(p, again[n]) for n, p in first.items())
    assert not torch.equal(first["head.weight"], other["head.weight"])
