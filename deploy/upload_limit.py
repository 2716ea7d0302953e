"""Limit of the bytes that a node may send to a SuperLink in one reply."""

import logging
import os
from functools import partial
from typing import Any

import grpc
from flwr.proto.fleet_pb2 import PushMessagesRequest, PushMessagesResponse
from flwr.proto.message_pb2 import PushObjectRequest, PushObjectResponse
from flwr.server.superlink.fleet.grpc_rere.fleet_servicer import FleetServicer

from common.errors import ConfigError

VARIABLE = "FEDLOOM_MOST_UPLOAD"
"""Environment variable with the limit in MB."""

DEFAULT_MB = 256
MEGABYTE = 10**6

log = logging.getLogger("flwr")


class BoundedFleet(FleetServicer):
    """Fleet API that stores no more than so many bytes of a message.

    Args:
        most: Bytes of all objects of a message.
        options: Arguments of Flower's servicer.
    """

    def __init__(self, most: int, **options: Any) -> None:
        super().__init__(**options)
        self._most = most
        self._received: dict[int, tuple[str, int]] = {}
        """Node -> its announced message, and the bytes that it has sent since."""

    def PushMessages(  # noqa: N802 - Flower's name
        self, request: PushMessagesRequest, context: grpc.ServicerContext
    ) -> PushMessagesResponse:
        """Announce a reply."""
        self._received[request.node.node_id] = request.message_object_trees[0].object_id, 0
        return super().PushMessages(request, context)

    def PushObject(  # noqa: N802 - Flower's name
        self, request: PushObjectRequest, context: grpc.ServicerContext
    ) -> PushObjectResponse:
        """Store an object of the announced reply, or delete the reply as too large."""
        node = request.node.node_id
        with self.lock:
            root, size = self._received.get(node, ("", 0))
            size += len(request.object_content)
            self._received[node] = root, size
        if size <= self._most:
            return super().PushObject(request, context)
        log.warning(
            "deleted a reply of node %s, which is larger than %s MB (%s)", node, self._most // MEGABYTE, VARIABLE
        )
        self.objectstore_factory.store().delete(root)
        return PushObjectResponse(stored=False)


def limit_uploads(module: Any) -> None:
    """Limit single messages and replies in Flower's module of the SuperLink.

    gRPC refuses a larger message unread.

    Raises:
        ConfigError: The environment has another value than a number of MB.
    """
    text = os.environ.get(VARIABLE) or str(DEFAULT_MB)
    if not text.isdecimal() or not int(text):
        raise ConfigError(f"{VARIABLE}={text} is no number of MB; leave it out for {DEFAULT_MB}")
    most = int(text) * MEGABYTE
    module.GRPC_MAX_MESSAGE_LENGTH = most + MEGABYTE  # with the fields around an object
    module.FleetServicer = partial(BoundedFleet, most)
