"""Forecasters of the next day, history B × H × D -> forecast B × P × D, and the property loss.

Parameters under `head` are the private head of personalized methods.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import linear

from common.logic.projection import clamp, property_loss, separate
from common.tasks.traffic.options import TrafficOptions


class GRUCell(nn.GRUCell):
    """PyTorch's cell, from operations that `vmap` stacks; equal to it bit for bit."""

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state, B × hidden."""
        before = input.new_zeros(len(input), self.hidden_size) if hx is None else hx
        read, remembered = linear(input, self.weight_ih, self.bias_ih), linear(before, self.weight_hh, self.bias_hh)
        reset, update, _ = (read + remembered).chunk(3, 1)
        candidate = torch.tanh(read.chunk(3, 1)[2] + remembered.chunk(3, 1)[2] * torch.sigmoid(reset))
        return (before - candidate) * torch.sigmoid(update) + candidate


CELLS: Mapping[str, Callable[[int, int], nn.Module]] = {"rnn": nn.RNNCell, "gru": GRUCell, "lstm": nn.LSTMCell}

WIDTH, HEADS, LAYERS, FEEDFORWARD = 120, 2, 2, 200
"""Sizes of the transformer (§3.8)."""


class Recurrent(nn.Module):
    """Recurrent network: two stacked cells over P slices of the history, and a dense layer on each state.

    A slice is one input vector.
    """

    def __init__(self, variables: int, options: TrafficOptions) -> None:
        super().__init__()
        short = max(1, options.history - options.horizon)
        self.length = options.history if options.slice == "latest" else short
        self.first = 1 if options.slice == "yesterday" and options.history > options.horizon else 0
        self.horizon = options.horizon
        cell = CELLS[options.network]
        self.lower, self.upper = cell(self.length * variables, options.hidden), cell(options.hidden, options.hidden)
        self.head = nn.Linear(options.hidden, variables)

    def forward(self, history: Tensor) -> Tensor:
        """Forecast B × P × D from B × H × D.

        Step t reads x[t+1 : t+1+L], x[t : t+L] (the paper), or the whole history, by the option `slice`.
        """
        slices = history.unfold(1, self.length, 1)[:, self.first : self.first + self.horizon].flatten(2)
        slices = slices.expand(-1, self.horizon, -1)
        lower = upper = None
        states = []
        for t in range(self.horizon):
            lower = self.lower(slices[:, t], lower)
            upper = self.upper(_output(lower), upper)
            states.append(_output(upper))
        forecast: Tensor = self.head(torch.stack(states, dim=1))
        return forecast


class Transformer(nn.Module):
    """Transformer: encoder over the history, masked decoder over its last P readings.

    The blocks form the private head. Deviation: no dropout, since masks inside attention cannot be sampled per client.
    """

    def __init__(self, variables: int, options: TrafficOptions) -> None:
        super().__init__()
        self.history, self.horizon = options.history, options.horizon
        self.encoder_input, self.decoder_input = nn.Linear(variables, WIDTH), nn.Linear(variables, WIDTH)
        self.linear_mapping = nn.Linear(WIDTH, variables)
        self.head = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, FEEDFORWARD, dropout=0.0, batch_first=True, norm_first=False
        )

    def forward(self, history: Tensor) -> Tensor:
        """Forecast B × P × D from B × H × D."""
        places = sinusoids(self.history)  # made in each step: PyTorch creates it on the device of the step
        seen = self.encoder_input(history) + places
        recent = self.decoder_input(history[:, -self.horizon :]) + places[-self.horizon :]
        with sdpa_kernel(SDPBackend.MATH):  # the only attention that vmap supports
            states = self.head(seen, recent, tgt_mask=causal_mask(self.horizon), tgt_is_causal=True)
        forecast: Tensor = self.linear_mapping(states)
        return forecast


class ProfileForecaster(nn.Module):
    """Default model: linear map plus a scaled network, on residuals of the weekly profile.

    History and forecast are residuals of the sensor's profile. Both parts start at zero, and training starts at the profile.
    """

    def __init__(self, network: nn.Module, variables: int, options: TrafficOptions) -> None:
        super().__init__()
        self.network = network
        self.shape = options.horizon, variables
        self.linear = nn.Linear(options.history * variables, options.horizon * variables)
        self.scale = nn.Parameter(torch.zeros(1))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, history: Tensor) -> Tensor:
        """Forecast B × P × D from B × H × D."""
        linear: Tensor = self.linear(history.flatten(1)).unflatten(1, self.shape)
        network: Tensor = self.network(history)
        return linear + self.scale * network


def build_forecaster(variables: int, options: TrafficOptions, *, paper: bool) -> nn.Module:
    """Build the network of the options, alone (paper) or on the profile's residuals (default)."""
    build = Transformer if options.network == "transformer" else Recurrent
    network = build(variables, options)
    return network if paper else ProfileForecaster(network, variables, options)


def _output(state: Tensor | tuple[Tensor, Tensor]) -> Tensor:
    """Return the output part of a cell's state; an LSTM's state has a second part."""
    output: Tensor = state[0] if isinstance(state, tuple) else state
    return output


def causal_mask(length: int) -> Tensor:
    """Return the mask that hides later readings, length × length."""
    return torch.triu(torch.full((length, length), -torch.inf), diagonal=1)


def sinusoids(length: int) -> Tensor:
    """Compute positional sinusoids, length × WIDTH (Vaswani et al. 2017, §3.5)."""
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10_000) / WIDTH))
    waves: Tensor = torch.stack([torch.sin(position * rate), torch.cos(position * rate)], dim=2).flatten(1)
    return waves


def violation(forecast: Tensor, low: Tensor, high: Tensor, pair: tuple[int, int] | None) -> Tensor:
    """Compute L_p, the mean distance of forecasts to the closest satisfying ones, a scalar.

    Args:
        forecast: Forecasts in standard deviations, B × P × D.
        low: Lower bounds of each reading, B × P × D; of a difference, B × P × 1.
        high: Upper bounds of the same shape; not used for a difference.
        pair: Indices of the variables with x₁ − x₂ > low (template 4); None for low ≤ x ≤ high (template 1).
    """
    if pair is None:
        return property_loss(forecast, clamp(forecast, low, high))
    columns = list(forecast.unbind(-1))
    columns[pair[0]], columns[pair[1]] = separate(columns[pair[0]], columns[pair[1]], low.squeeze(-1))
    return property_loss(forecast, torch.stack(columns, -1))


def judged_violation(forecast: Tensor, taught: Tensor, judged: Tensor) -> Tensor:
    """Compute L_p over the forecasts that a formula judges, a scalar; 0 if it judges none.

    Args:
        forecast: Forecasts in standard deviations, B × P × D.
        taught: Closest satisfying forecasts, constants of the same shape.
        judged: 1 for each judged forecast, else 0, B.
    """
    distances = (forecast - taught).abs().mean((-2, -1))
    return (judged * distances).sum() / judged.sum().clamp(min=1)
