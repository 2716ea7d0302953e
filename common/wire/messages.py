"""Schema of all messages between server, clients and helpers, one frozen dataclass per payload.

A helper keeps the clients' masks apart from the server. The server never sends a helper what clients uploaded.

Fields are `Arrays`, `Metrics`, `int`, `float`, `str`, `bool` or `list[str]`; an absent value is empty, never None.
A change of any field raises `SCHEMA`; a reply of another schema is left out of its round.
"""

from dataclasses import dataclass, field

from common.arrays import Arrays

HELPER, PREPARE, OPEN = "query.helper", "query.prepare", "query.open"
"""Flower message types that helpers answer."""

MEMBERS = "query.members"
"""Flower message type of the members of secure sums, which clients answer."""


@dataclass(frozen=True, kw_only=True)
class SumRequest:
    """Request whose reply can be an upload to a secure sum."""

    terms: str = ""
    """Terms of the secure sum as canonical JSON (`SumTerms`); empty requests a reply without masks."""


@dataclass(frozen=True, kw_only=True)
class SumReply:
    """Reply that can be an upload to a secure sum; its other arrays and metrics are then empty."""

    masked: Arrays = field(default_factory=dict)
    """The masked vector, `sum`, of uint64, and its `proof`; empty without terms.

    With noise the proof are bytes (`common.secure.norms`), without the checks of each helper's masks, uint64."""
    sealed: list[str] = field(default_factory=list)
    """One sealed seed for each helper, in the order of the roster, as base64."""


@dataclass(frozen=True, kw_only=True)
class LedgerReply:
    """Reply of a client that reports the head of its privacy ledger."""

    ledger: str = ""
    """Head after the reply, `lineage:sequence:link`; empty without noise."""


@dataclass(frozen=True)
class HelperRequest:
    """Question to a node whether it helps in a run, and notice that the run is complete."""

    run: str
    config: str
    """Resolved `RunConfig` as JSON."""
    over: bool = False
    """True if the run is complete: the helper deletes its keys of the run and replies without a card."""


@dataclass(frozen=True)
class HelperReply:
    """Card of a helper."""

    card: str
    """Signed `NodeCard` as canonical JSON; empty if this node does not help."""


@dataclass(frozen=True)
class PrepareRequest:
    """Request to open the sealed seeds of a sum's clients; no seed leaves the helper."""

    terms: str
    """Terms of the sum as canonical JSON (`SumTerms`)."""
    clients: list[str]
    """Names of the clients, ascending."""
    sealed: list[str]
    """One sealed seed for each client, as base64."""
    members: list[str]
    """Members of the run's sums, as lines, in the order that the digest of the terms covers."""
    commitments: list[str] = field(default_factory=list)
    """Commitment of each client's upload (`common.secure.norms`), as base64; empty without noise."""


@dataclass(frozen=True)
class PrepareReply:
    """Clients whose seeds a helper cannot use."""

    round: int
    channel: str
    """Channel of the sum, as in its terms; a reply repeats that of its request."""
    bad: list[str]
    """Names of the clients whose sealed seed does not open here, or is not signed by a member."""
    shares: Arrays = field(default_factory=dict)
    """Bytes of a share in the check of each client's norm, `shares`, (clients, bytes); with noise only."""


@dataclass(frozen=True)
class OpenRequest:
    """Request for the sum of masks of a set of clients, one set for each round and channel."""

    terms: str
    """Terms of the sum as canonical JSON (`SumTerms`)."""
    clients: list[str]
    """Names of the clients in the sum, ascending."""


@dataclass(frozen=True)
class OpenReply:
    """Sum of the masks minus the helper's noise."""

    round: int
    channel: str
    missing: bool
    """True if the seeds are no longer in memory; the server must send `PrepareRequest` again."""
    opened: Arrays = field(default_factory=dict)
    """`sum`, uint64: of masks minus noise, or of masks and then of blinds; empty if `missing`."""


HelperPayload = HelperRequest | HelperReply | PrepareRequest | PrepareReply | OpenRequest | OpenReply


SCHEMA = 18
"""Version of the schema, checked when a message is decoded."""

# Rhythm of the clients' heartbeats, by which the server separates slow clients from lost ones.

PROMISE_SECONDS = 10.0
"""Interval that a client promises to the SuperLink, which misses a node after twice that.

This is the minimum of Flower."""

IDLE_SECONDS = 5.0
"""Interval while no request waits for an answer."""

BUSY_SECONDS = 0.75
"""Interval from the arrival of a request until its reply is sent."""

SILENCE_SECONDS = 2.25
"""Time without heartbeat after which the server expects no reply of a client that it has asked."""

RESTART_SECONDS = 0.75
"""The same after a restart of the client.

If the request has reached it again, its first heartbeat follows at once."""

Metrics = dict[str, float]

ENROL, NAMES, ASSIGN, TRAIN, EVALUATE = "query.enrol", "query.names", "query.assign", "train", "evaluate"
"""Flower message types (`<category>.<action>`)."""

FAILED, REFUSED = 1000, 1001
"""Flower error codes of a client that failed, and of one that refused; the error's text is the reason."""

LOCAL, CLUSTER = "local", "cluster"
"""Phases of a round's training."""


@dataclass(frozen=True)
class EnrolRequest:
    """Invitation to a run: the client's policy accepts or refuses it before any computation."""

    run: str
    """Name of the run."""
    config: str
    """Resolved `RunConfig` as JSON."""
    catalogue: str
    """Public vocabulary of the task as JSON; empty while the clients find it."""
    helpers: list[str] = field(default_factory=list)
    """Cards of the run's helpers in the order of their names, as JSON; empty without secure sums."""
    refusal: str = ""
    """Reason why the server refuses this client, in a copy of the invitation; else empty."""


@dataclass(frozen=True)
class EnrolReply(LedgerReply):
    """Acceptance of an invitation."""

    client: str
    """Stable name of the client, equal after a restart; cohorts are drawn from these names."""
    enrolment: str
    """Fingerprint of (run, config, catalogue, helpers); every later request repeats it."""
    examples: int
    """Number of records the client trains on; 1 where the privacy unit protects this number."""
    budget: float = 0.0
    """Remaining budget of this client in this run, in the unit of the run's costs; 0 without noise."""
    shares_metrics: bool = False
    """True if metrics of this client's held-out data are sent in this run, in plaintext or in sums."""
    card: str = ""
    """Signed `NodeCard` with the key of this client's uploads as canonical JSON; empty without sums."""


@dataclass(frozen=True)
class MembersRequest:
    """Further members of the run's secure sums, which a client must know before it joins a sum of them."""

    enrolment: str
    start: int
    """Number of members before these in the list."""
    cards: list[str]
    """Their signed cards as canonical JSON, in the order of the list."""
    check: str
    """Key of the checks of helpers' sums, base64, which no helper is sent."""


@dataclass(frozen=True)
class MembersReply:
    """Members that a client knows."""

    number: int
    """Number of members in its list."""
    digest: str
    """Digest of the list."""


@dataclass(frozen=True)
class NamesRequest(SumRequest):
    """Request for a part of a sum of names (`common.tasks.names`), in an enrolment without a vocabulary."""

    enrolment: str
    frequent: Arrays = field(default_factory=dict)
    """Hash -> buckets that enough clients have, in the second of the two sums of names; else empty."""


@dataclass(frozen=True)
class NamesReply(SumReply):
    """Part of one client in a sum of names."""

    part: Arrays
    """Slots and the numbers in each; empty in a secure sum."""


@dataclass(frozen=True)
class AssignRequest:
    """Request for the assignment scores of K models on a client's data."""

    round: int
    """Number of the round, from 1; a reply repeats that of its request."""
    enrolment: str
    models: Arrays
    """The K models, as `0/name`, `1/name` and so on."""
    criterion: str
    """`loss`; `property`, L_p of the client's own (algorithms.md §3.6)."""
    cost: float = 0.0
    """Privacy cost of the reply; see `TrainRequest.cost`."""
    statics: Arrays = field(default_factory=dict)
    """Untrained inputs of the models if losses depend on them; see `TrainRequest.statics`."""


@dataclass(frozen=True)
class AssignReply(LedgerReply):
    """K scores and the client's property."""

    round: int
    losses: Metrics
    """Model -> value of the criterion; lower is better."""
    property: Arrays
    """Parameters of the client's property, in units of its own scaler; empty if the task infers none."""


@dataclass(frozen=True)
class TrainRequest(SumRequest):
    """Training request of one round."""

    round: int
    enrolment: str
    model: Arrays
    """θ^c, the global model; in secure sums of clusters all K models, as `0/name`, `1/name` and so on."""
    shared: Arrays = field(default_factory=dict)
    """Arrays broadcast in addition to the model; FedRule: the mean d̄ of round `shared_round`."""
    shared_round: int = 0
    """Last round in which this client's reply was aggregated; 0 for none, or if it need not know."""
    statics: Arrays = field(default_factory=dict)
    """Untrained inputs of the model, such as what a closed form has solved."""
    phase: str = "local"
    """`local` or `cluster`.

    `cluster` is a round's second exchange, which moves shared layers only and stores no state on the client.
    """
    cost: float = 0.0
    """Privacy cost of the reply; 0 requests a reply without noise.

    μ²/2 of Gaussian DP with Gaussian noise and planned DP-SGD, ε with pure mechanisms, RDP at one order with other DP-SGD.
    """
    clip: float = 1.0
    """Factor on the run's clip norm C, at most 1."""
    clients: int = 0
    """Number of clients that the round asks; 0: not stated.

    From it a client computes what noise leaves of the training."""


@dataclass(frozen=True)
class TrainReply(SumReply, LedgerReply):
    """Result of one client's local training."""

    round: int
    update: Arrays
    """Δ_k = θ^c − θ_k of the shared layers; forms: `common.wire.sparse_rows`, `common.wire.encodings`."""
    gradient: Arrays
    """s_k, mean corrected gradient along the local path; empty unless the method needs it."""
    loss: float
    """Training loss at θ^c, before the first step; 0 in a reply with noise."""
    examples: int
    """Number of records trained on; 1 in a reply with noise."""
    steps: int
    """τ_k, number of local steps."""


@dataclass(frozen=True)
class EvaluateRequest(SumRequest):
    """Request for metrics of the global model on the client's held-out records."""

    round: int
    enrolment: str
    model: Arrays
    split: str
    """`validation` or `test`."""
    statics: Arrays = field(default_factory=dict)
    final: bool = False
    """True for the final model, which a client stores for its own recommendations."""


@dataclass(frozen=True)
class EvaluateReply(SumReply, LedgerReply):
    """Metrics of one client, each a mean with its number of records."""

    round: int
    metrics: Metrics
    """Metric key -> mean over the client's records or units."""
    weights: Metrics
    """Metric key -> number of records or units behind the mean."""
    paired: Arrays = field(default_factory=dict)
    """Baseline -> n, Σd, Σd², wins, losses over the client's units of data.

    d is the model's metric minus the baseline's. Sent for the final model, under the same policy as metrics.
    """


Payload = (
    EnrolRequest
    | EnrolReply
    | NamesRequest
    | NamesReply
    | AssignRequest
    | AssignReply
    | TrainRequest
    | TrainReply
    | EvaluateRequest
    | EvaluateReply
    | MembersRequest
    | MembersReply
    | HelperPayload
)
