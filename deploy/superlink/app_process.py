"""Process of a ServerApp: it waits for the run of its SuperLink, and trains.

Flower's SuperExec starts a program for each run, which imports PyTorch and Flower first. A command that owns its SuperLink
starts this process instead.
"""

import argparse
import os
import time
from pathlib import Path
from queue import Queue

from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.logger import mirror_output_to_queue
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.superlink.runtime import RuntimeHttpClient, run_serverapp

POLL_SECONDS = 0.05


def main() -> None:
    """Wait for a run and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="host:port of the Runtime API")
    parser.add_argument("--ca", type=Path, help="certificate authority; none for an unencrypted SuperLink")
    options = parser.parse_args()
    ca = options.ca.read_bytes() if options.ca else None
    token = await_run(options.address, ca)
    lines: Queue[str | None] = Queue()
    mirror_output_to_queue(lines)
    run_serverapp(options.address, lines, token, ca is None, ca, os.getppid(), runtime_dependency_install=False)


def await_run(address: str, ca: bytes | None) -> str:
    """Return the token of the first run of the SuperLink."""
    client = RuntimeHttpClient.from_server_address(
        address,
        ca is None,
        ca,
        [RuntimeVersionHttpInterceptor(component_name="SuperExec")],
        retry_invoker=make_simple_http_retry_invoker(),
    )
    request = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
    try:
        while not (token := str(client.AcquireTask(request).token)):
            time.sleep(POLL_SECONDS)
    finally:
        client.close()
    return token


if __name__ == "__main__":
    main()
