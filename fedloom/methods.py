"""Methods of your own from Python."""

from collections.abc import Callable
from typing import Any

from client.trainers.base import AnyClientMethod, ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.registry import CLIENT_METHODS
from common.methods.base import AnyMethod
from common.methods.registry import METHODS
from server.methods.registry import SERVER_METHODS
from server.round.method import AnyServerMethod, Method, ServerMethod


def add_method(method: AnyMethod, server: Callable[[Any], Method], client: AnyClientMethod | None = None) -> None:
    """Add a training method for this process; `simulate(method=...)` then trains with it.

    An installed package provides a method to all processes, also over gRPC: see "Add a method" in the documentation.

    Args:
        method: Options of the method, as a `MethodSpec`.
        server: Class or function that builds the server step, a `server.api.Method`, from the method's options.
        client: Client side; default: local training as in FedAvg.

    Raises:
        ConfigError: fedloom or an installed package has a method of this name.
    """
    sides: tuple[AnyServerMethod, AnyClientMethod] = (
        ServerMethod(method, server),
        client or ClientMethod(method, FedAvgTrainer),
    )
    METHODS.add(method)
    SERVER_METHODS.add(sides[0])
    CLIENT_METHODS.add(sides[1])
