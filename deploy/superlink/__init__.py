"""Flower's SuperLink: its process, its guard, its control and the erasure of ended runs."""

import os

os.environ.setdefault(
    "GRPC_VERBOSITY", "ERROR"
)  # read with gRPC's import; else each failed handshake is a line of its log
