"""Content of messages as Flower's objects: the Fleet API carries each of them in a call of its own."""

from flwr.app import Message
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.fleet_pb2 import PushMessagesRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

from common.errors import WireError


def pack_reply(node: Node, reply: Message, seconds: float) -> tuple[PushMessagesRequest, dict[str, bytes]]:
    """Return the announcement of a reply that took `seconds` to compute, and its objects by id."""
    reply.metadata.__dict__["_message_id"] = reply.object_id
    with no_object_id_recompute():
        contents = {identity: thing.deflate() for identity, thing in get_all_nested_objects(reply).items()}
        request = PushMessagesRequest(
            node=node,
            messages_list=[message_to_proto(remove_content_from_message(reply))],
            message_object_trees=[get_object_tree(reply)],
            clientapp_runtime_list=[seconds],
        )
    return request, contents


def unpack_message(root: str, contents: dict[str, bytes], sender: str) -> Message:
    """Return the message that consists of these objects.

    Raises:
        WireError: The objects are malformed, or something else than a message.
    """
    try:
        message = inflate_object_from_contents(root, contents)
    except Exception as error:  # servers may send any bytes
        raise WireError(f"{sender} sent malformed content ({type(error).__name__})") from error
    if not isinstance(message, Message):
        raise WireError(f"{sender} sent a {type(message).__name__} instead of a message")
    message.metadata.__dict__["_message_id"] = root  # the content cannot contain its own hash
    return message
