"""Answers of a client whose first request imports PyTorch."""

import functools
from typing import TYPE_CHECKING

from flwr.app import Context, Message

from client.settings import ClientSettings

if TYPE_CHECKING:
    from client.session import Session


def respond(message: Message, context: Context) -> Message:
    """Answer a message by the app of clients."""
    import_training()
    from client.app import app

    return app(message, context)


def session_of(context: Context) -> "Session":
    """Return the session of a node."""
    import_training()
    from client.app import open_session

    return open_session(ClientSettings.from_context(context))


@functools.cache
def import_training() -> None:
    """Import PyTorch, for one thread of computation."""
    import torch

    torch.set_num_threads(1)
