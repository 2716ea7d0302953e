"""Forecasters as networks with named inputs, for export."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from client.tasks.registry import ExportableNetwork
from common.arrays import Arrays
from common.tasks.traffic.model import GRUCell, ProfileForecaster, Recurrent
from common.tasks.traffic.options import TrafficOptions

LAYERS: dict[type[nn.Module], Callable[..., nn.RNNBase]] = {nn.RNNCell: nn.RNN, GRUCell: nn.GRU, nn.LSTMCell: nn.LSTM}


class StackedRecurrent(nn.Module):
    """Recurrent network with one layer of torch, and so one ONNX operator, in place of each cell.

    Args:
        network: Network with cells; its weights are copied.
        history: Number H of steps of a history.
    """

    def __init__(self, network: Recurrent, history: int) -> None:
        super().__init__()
        self.head = network.head
        windows = history - network.length + 1 - network.first
        starts = network.first + torch.arange(network.horizon) * int(windows >= network.horizon)
        self.register_buffer("places", starts[:, None] + torch.arange(network.length))
        cells = network.lower, network.upper
        weight = cells[0].get_parameter("weight_ih")
        self.layers = LAYERS[type(cells[0])](weight.shape[1], network.head.in_features, 2, batch_first=True)
        with torch.no_grad():
            for number, cell in enumerate(cells):
                for name, parameter in cell.named_parameters():
                    self.layers.get_parameter(f"{name}_l{number}").copy_(parameter)

    def forward(self, history: Tensor) -> Tensor:
        """Forecast B × P × D from B × H × D."""
        slices = history[:, self.get_buffer("places")].transpose(2, 3).flatten(2)
        forecast: Tensor = self.head(self.layers(slices)[0])
        return forecast


def exportable(network: nn.Module, variables: int, options: TrafficOptions) -> ExportableNetwork:
    """Return the network with the input `history`, in standard deviations; a size is a number of windows.

    The default model reads and forecasts residuals.
    """

    def sample(size: int, rng: np.random.Generator) -> Arrays:
        return {"history": rng.normal(size=(size, options.history, variables)).astype(np.float32)}

    if isinstance(network, ProfileForecaster) and isinstance(network.network, Recurrent):
        network.network = StackedRecurrent(network.network, options.history)
    elif isinstance(network, Recurrent):
        network = StackedRecurrent(network, options.history)
    return ExportableNetwork(network, {"history": {0: "windows"}}, sample, "forecast")
