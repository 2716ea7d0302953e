"""Typed errors of the gRPC status of a failed call, each with a remedy."""

import json

import grpc

from client.node.failures import NotAdmittedError, RunOverError, Server, ServerAwayError, diagnose, format_clock
from common.errors import ConnectError, FedloomError

_ACTIVATION_FAILED, _KEYS_ARE_REQUIRED = 2004, 2001  # Flower's ApiErrorCode


def explain(error: grpc.RpcError, server: Server) -> FedloomError:
    """Return the error to raise for a failed call.

    It is an error of `client.node.failures` if retrying can help, else a plain ConnectError.
    """
    status, details = error.code(), error.details() or ""
    match status:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
            return diagnose(server)
        case grpc.StatusCode.PERMISSION_DENIED:
            return RunOverError("the run has ended")
        case grpc.StatusCode.RESOURCE_EXHAUSTED if "larger than max" in details:
            return RunOverError(
                f"{server.address} takes no message of this size; its owner can raise FEDLOOM_MOST_UPLOAD there"
            )
        case grpc.StatusCode.UNAUTHENTICATED if "timestamp" in details:
            return NotAdmittedError(
                f"{server.address}: the clock of this machine or of the server is wrong; here it is {format_clock()}, and a"
                " client may be five seconds ahead or five minutes behind; set both by NTP"
            )
        case grpc.StatusCode.UNAUTHENTICATED:
            return NotAdmittedError(f"{server.address} no longer recognizes this node")
        case grpc.StatusCode.FAILED_PRECONDITION:
            return _explain_refusal(server, details)
        case grpc.StatusCode.UNIMPLEMENTED:
            return ConnectError(f"{server.address} is not a Fleet API of Flower 1.39; check address and version")
        case _:
            return ServerAwayError(f"{server.address} returned gRPC status {status.name}")


def _explain_refusal(server: Server, details: str) -> ConnectError:
    try:
        payload = json.loads(details)
        code, text = payload.get("code"), payload.get("detail", "")
    except (ValueError, AttributeError):
        code, text = None, details
    if code == _ACTIVATION_FAILED:
        return NotAdmittedError(
            f"{server.address} does not admit this node's key; register its public key at the server"
            " or end the other client that uses the same key"
        )
    if code == _KEYS_ARE_REQUIRED:
        return ConnectError(f"{server.address} admits registered keys only; give this node's key with --key")
    return ConnectError(f"{server.address} refuses this node: {text}")
