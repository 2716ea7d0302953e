"""What a client keeps of an invitation that it accepted, so that a run can go on after a restart, and only as that run."""

import hashlib
import json

from client.state import Store
from common.config.flatten import from_json
from common.config.run import RunConfig
from common.errors import RefusedError, WireError
from common.wire.messages import EnrolRequest

ENROLMENT = "enrolment.json"
"""The document's name in a run's state."""


def fingerprint(request: EnrolRequest) -> str:
    """The name of an enrolment: the run, and a digest of its configuration and vocabulary."""
    digest = hashlib.sha256(f"{request.config}\n{request.catalogue}".encode()).hexdigest()
    return f"{request.run}:{digest[:16]}"


def remember(store: Store, request: EnrolRequest) -> None:
    """Keep an invitation that was accepted."""
    document = {"config": request.config, "catalogue": request.catalogue, "enrolment": fingerprint(request)}
    store.write(request.run, ENROLMENT, json.dumps(document).encode())


def accepted(store: Store, enrolment: str) -> EnrolRequest:
    """The invitation that was accepted under that name.

    Raises:
        WireError: None was, or another one since.
    """
    run = enrolment.partition(":")[0]
    document = json.loads(store.read(run, ENROLMENT) or b"{}")
    if document.get("enrolment") != enrolment:
        raise WireError("not enrolled in this run, or under another configuration; invite this client anew")
    return EnrolRequest(run, document["config"], document["catalogue"])


def check_same_run(store: Store, run: str, config: RunConfig) -> None:
    """Accept a run whose private memory, if there is any, was made by the same method under the same privacy.

    What a client remembers of a run without noise, or with noise on what it sends only, is exact. A run of the same name with
    noise on records would let it out beside that noise.

    Raises:
        RefusedError: It was not.
    """
    known = store.read(run, ENROLMENT)
    if not known:
        return
    before = from_json(json.loads(known)["config"])
    for key in ("method", "task", "model"):
        if getattr(before, key) != getattr(config, key):
            raise RefusedError(f"a run of this name had another {key}; a new run needs a name of its own")
    if before.privacy.unit != config.privacy.unit:
        raise RefusedError("a run of this name promised another privacy.unit; a new run needs a name of its own")
