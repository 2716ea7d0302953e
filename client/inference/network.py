"""Network of a finished model as a function of named arrays; importing it must not import torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from common.arrays import Array, Arrays

if TYPE_CHECKING:
    from torch import nn

Network = Callable[[Arrays], Array]
"""Trained network: inputs by name -> output."""


@dataclass(frozen=True, eq=False)
class ExportableNetwork:
    """Network of a finished model with named inputs, to be exported.

    Args:
        module: Module that holds the trained parameters; its arguments are the inputs in the order of `axes`.
        axes: Name of an input -> axis of variable size -> name of that size.
        sample: Draw inputs of a size, such as a number of devices, clicks or items.
        output: Name of the output.
    """

    module: "nn.Module"
    axes: Mapping[str, Mapping[int, str]]
    sample: Callable[[int, np.random.Generator], Arrays]
    output: str
