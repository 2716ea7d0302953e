"""Client of `fedloom join`: settings, limits, data, and service until a signal.

A client that waits has no PyTorch. Its first request imports it.
"""

import functools
import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Context, Message

from client.checks import check_client
from client.data.child_reader import read_partition_apart
from client.data.dataset import is_demo
from client.data.read import with_test
from client.node import resident
from client.node.failures import Server
from client.node.flower import refusals
from client.node.observer import Observer
from client.owner.control import OwnerControl, RunningClient
from client.owner.journal import RequestJournal
from client.owner.policy import Policy, read_policy
from client.owner.view import OwnerView
from client.settings import ClientSettings
from common.config.parse import parse
from common.errors import ConfigError, NothingYetError
from common.methods.registry import METHODS
from common.node_names import check_name, default_name, fingerprint
from common.options import Scalar
from common.privacy.claims import UNBOUNDED
from common.tasks.registry import FIRST_TASK
from common.text import meant
from deploy.cli.options import NEWCOMER, ClientRequest, DataRequest, PolicyRequest, ServerRequest
from deploy.cli.output import await_room_in, note
from deploy.data.budgets import require_unpartitioned
from deploy.data.partitions import PARTITIONS, remember_source
from deploy.federation.agreement import BY_POLICY, Agreements, identity_of
from deploy.federation.helper import begin_service, helping_too, with_room
from deploy.files import read_file, write_file
from deploy.keys.invitation import read_invitation
from deploy.keys.nodes import load_private_key

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


FILE = "policy.toml"
"""File in a client's state with both limits, written at every start."""


def store_limits(settings: ClientSettings, methods: Sequence[str], epsilon: float | None, delta: float | None) -> Path:
    """Write the limits where the client reads them, for its owner only, and return the file.

    Raises:
        ConfigError: As `narrowed`, or the policy file is wrong.
    """
    policy = narrowed(read_policy(settings.policy, is_generated=is_demo(settings.data)), methods, epsilon, delta)
    path = settings.state_dir / settings.name / FILE
    write_file(path, tomli_w.dumps(policy.model_dump(by_alias=True)).encode(), mode=0o600, overwrite=True)
    return path


def narrowed(
    policy: Policy, methods: Sequence[str] = (), epsilon: float | None = None, delta: float | None = None
) -> Policy:
    """Return the policy that allows what both it and the command line allow.

    With `epsilon`, the maximum ε over all runs, runs without noise are refused. Without methods, those of the policy hold.

    Raises:
        ConfigError: An option is mistyped, has no effect by itself, or leaves no method.
    """
    limits: dict[str, Any] = {"methods": _allowed_by_both(policy, methods)} if methods else {}
    if epsilon is not None:
        if not 0 < epsilon < UNBOUNDED:
            raise ConfigError(f"--epsilon {epsilon:g} is out of range; give a positive number below {UNBOUNDED:g}")
        limits |= {"max_epsilon": min(epsilon, policy.max_epsilon), "require_noise": True}
    if delta is not None:
        if epsilon is None:
            raise ConfigError("--delta needs --epsilon; give both, or remove --delta")
        if not 0 < delta < 1:
            raise ConfigError(f"--delta {delta:g} is out of range; give a probability between 0 and 1, such as 1e-5")
        limits["delta"] = min(delta, policy.delta) if "delta" in policy.model_fields_set else delta
    return policy.model_copy(update=limits)


def _allowed_by_both(policy: Policy, methods: Sequence[str]) -> tuple[str, ...]:
    for method in methods:
        if method not in METHODS:
            raise ConfigError(f"--method: unknown '{method}'{meant(method, METHODS)}")
    if both := tuple(method for method in policy.methods if method in methods):
        return both
    allowed = f"allows {', '.join(policy.methods)} only" if policy.methods else "allows no method"
    raise ConfigError(f"the policy file {allowed}; remove --method {methods[0]}, or change the file")


def configure(
    at: ServerRequest, source: DataRequest, client: ClientRequest, limits: PolicyRequest, name: str, hub: str = ""
) -> tuple[dict[str, Scalar], ClientSettings]:
    """Return a client's configuration as a node's and as settings, with its limits written as its policy.

    Raises:
        ConfigError: An option is wrong.
    """
    config: dict[str, Scalar] = {
        "data": source.data,
        "tables": json.dumps(source.dialect.to_fields()),
        "shard": client.shard,
        "name": name,
        "hub": hub,
        "state-dir": str(client.state_dir.resolve()),
    }
    config |= {"policy": str(limits.policy.resolve())} if limits.policy else {}
    config |= {"key": str(at.key.resolve())} if at.key and not hub else {}
    config |= {"ledgers": str(client.ledgers.resolve())} if client.ledgers else {}
    config |= {"device": client.device} if client.device != "cpu" else {}
    config |= {"server": identity_of(at)} if at.server else {}
    config |= {"accept": BY_POLICY} if at.accept == BY_POLICY else {}
    settings = ClientSettings.from_node(config, name)
    if limits.methods or limits.epsilon is not None or limits.delta is not None:
        config["policy"] = str(store_limits(settings, limits.methods or [], limits.epsilon, limits.delta))
        settings = ClientSettings.from_node(config, name)
    await_room_in(settings.state_dir, needed=2**22)  # with more, a running client answers that its disk is full
    settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    return config, settings


@dataclass(frozen=True)
class OpenClient:
    """Client with checked settings and data; its settings also as a node's configuration."""

    settings: ClientSettings
    config: dict[str, Scalar]
    key: ec.EllipticCurvePrivateKey | None


def open_client(
    at: ServerRequest, source: DataRequest, client: ClientRequest, limits: PolicyRequest, test: str, adapt: str
) -> OpenClient:
    """Return the client, with its policy written; print notes about its data.

    Raises:
        ConfigError: An option is wrong, partitions of these data have spent their budget, or the owner declines.
        DataError: The data cannot be read.
    """
    key = load_private_key(at.key) if at.key else None
    name = client.name or (default_name(fingerprint(key.public_key())) if key else "") or (NEWCOMER if adapt else "")
    if adapt:
        from deploy.federation.adaptation import task_of

        task = task_of(adapt, client.task)
    else:
        task = parse({"task": client.task or FIRST_TASK}).task
    dialect = source.dialect  # fails at once if an option is wrong
    config, settings = configure(at, replace(source, data=with_test(task, source.data, test)), client, limits, name)
    policy = check_client(settings).policy  # fails at once if policy or state are wrong, and the next lines if data are
    if at.server and (policy.require_noise or math.isfinite(policy.max_epsilon)):
        require_unpartitioned(PARTITIONS, settings.data)
    agreements = Agreements(at)  # fails at once if the address or the terms are wrong
    try:
        part = read_partition_apart(task, settings.data, settings.part, settings.data_seed, dialect=dialect)
        for line in part.notes:
            note(f"{source.data}: {line}")
    except NothingYetError as error:  # a client without records takes part with the shared model
        note(str(error))
    agreements.settle(settings, policy)
    remember_source(settings.state_dir / settings.name, replace(source, data=with_test(task, source.data, test)), task)
    return OpenClient(settings, config, key)


def serve_requests(at: ServerRequest, client: OpenClient) -> None:
    """Answer the server until a signal, or the owner's `fedloom leave`, stops the client."""
    name, state = client.settings.name, client.settings.state_dir
    journal = RequestJournal(state)
    serve_node(
        at,
        name,
        state,
        client.key,
        with_room(_open_app(client), state, *_ledger_folders(client.settings)),
        lambda control: OwnerView(at.server, name, journal, control, session_of),
        client.config,
    )


def _ledger_folders(settings: ClientSettings) -> list[Path]:
    """Return the folder of the client's ledgers, if it is not below its state."""
    folder = settings.ledgers or Path(settings.data).parent
    return [folder] if folder.is_dir() else []


def _open_app(client: OpenClient) -> resident.Answer:
    """Return the client's app; with `serve-as-helper` it also helps.

    Raises:
        ConfigError: The client has no key.
    """
    settings, key = client.settings, client.key
    if not check_client(settings).policy.serve_as_helper:
        return respond
    if key is None:
        raise ConfigError("serve-as-helper = true needs the node's key, by which clients know their helpers; use --key")
    return helping_too(check_name(f"{settings.name}-helper"), key, respond)


def serve_node(
    at: ServerRequest,
    name: str,
    state: Path,
    key: ec.EllipticCurvePrivateKey | None,
    app: resident.Answer,
    observe: Callable[[OwnerControl], Observer],
    config: Mapping[str, Scalar] | None = None,
) -> None:
    """Answer the server by a node until a signal, or the owner's `fedloom leave`, stops it."""
    ca = read_file(at.ca) if at.ca else b""
    stop = begin_service()
    refusals.setLevel(logging.CRITICAL)  # the owner's log has a line for each
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with OwnerControl(state, RunningClient(os.getpid(), name, at.server, started)) as control:
        if not control.is_alone:
            note(f"another client '{name}' runs in {state}; give each client its own --state-dir")
        token = read_invitation(at.invite).token if at.invite else ""
        server = Server(at.server, ca, key, at.key, name, token)
        observer = observe(control)
        resident.run_resident(app, server, stop=stop, node_config=config, patience=at.patience, observer=observer)
