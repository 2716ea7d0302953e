"""Waiting for a reply's content, which reaches the SuperLink some milliseconds after the reply is announced.

Flower's HttpGrid then sleeps a full second before it looks again, and its public interface offers no way to say
otherwise; a server that polls in milliseconds meets this in many rounds. So this file reaches into Flower, as only
`server.grid` does besides: it gives the retry that HttpGrid makes other parameters. A contract test pins what it relies on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from flwr.superlink.grid import http_grid

FIRST_RETRY, LONGEST_RETRY = 0.005, 0.2  # seconds
LONGEST_UPLOAD = 20.0  # seconds; a client that dies in the middle of an upload holds its round up no longer than this


@contextmanager
def quick_uploads(deadline: float) -> Iterator[None]:
    """Inside, announced content is looked for within milliseconds, and given up after `deadline` seconds.

    Content given up arrives as an error reply, like any other failure of a client.
    """
    names = vars(http_grid)
    patient = names["pull_objects"]
    names["pull_objects"] = partial(
        patient, max_time=deadline, max_tries_per_object=None, initial_backoff=FIRST_RETRY, backoff_cap=LONGEST_RETRY
    )
    try:
        yield
    finally:
        names["pull_objects"] = patient
