"""THE schema: everything that travels between server and clients, one frozen dataclass a payload.

Fields are `Arrays`, `Metrics`, `int`, `float`, `str`, `bool` or `list[str]`; absence is an empty value, never None.
A change to any field raises `SCHEMA`; a reply of another schema is left out of its round.
"""

from dataclasses import dataclass, field

from common.arrays import Arrays

SCHEMA = 5
"""Version of the schema, checked on decoding."""

Metrics = dict[str, float]

ENROL, COUNTS, ASSIGN, TRAIN, EVALUATE = "query.enrol", "query.counts", "query.assign", "train", "evaluate"
"""Flower message types (`<category>.<action>`)."""

LOCAL, CLUSTER = "local", "cluster"
"""Phases of a round's training."""


@dataclass(frozen=True)
class EnrolRequest:
    """Invitation to a run: what will be asked of a client, so that its policy can say no before anything is computed."""

    run: str
    """Name of the run."""
    config: str
    """The resolved `RunConfig` as JSON."""
    catalogue: str
    """The task's public vocabulary as JSON."""


@dataclass(frozen=True)
class EnrolReply:
    """A client accepts."""

    client: str
    """Stable name, the same after a restart; cohorts are drawn from these."""
    enrolment: str
    """Fingerprint of (run, config, catalogue); every later request names it."""
    examples: int
    """Number of records (homes, sessions, series …) the client trains on; 1 where noise has to hide even that."""
    budget: float = 0.0
    """What this client may still spend in this run, in the unit that the run's costs are counted in; 0 without noise."""
    shares_metrics: bool = False
    """Whether metrics of this client's held-out data will leave it in this run."""


@dataclass(frozen=True)
class CountsRequest:
    """Ask for the sums a model's offset is made of: with the run's noise on counts or, where the policy allows it, in clear."""

    enrolment: str


@dataclass(frozen=True)
class CountsReply:
    """A client's own counts: with noise where the run promises it, else in clear."""

    counts: Arrays


@dataclass(frozen=True)
class AssignRequest:
    """Ask how well each of K models suits a client's data."""

    round: int
    enrolment: str
    models: Arrays
    """The K models, as `0/name`, `1/name` and so on."""
    criterion: str
    """`loss`; `property`: L_p of the client's own property (algorithms.md §3.6); `sample`: no models, hand windows over."""
    cost: float = 0.0
    """What the reply may spend: see `TrainRequest.cost`."""
    statics: Arrays = field(default_factory=dict)
    """Untrained inputs of the models, where losses depend on them: see `TrainRequest.statics`."""


@dataclass(frozen=True)
class AssignReply:
    """K numbers and the client's property; windows of training data only where its policy allows a `sample` to be asked for."""

    round: int
    losses: Metrics
    """Model -> the criterion's value, lower suits better."""
    property: Arrays
    """Parameters of the client's property, in units of its own scaler; empty where the task infers none."""


@dataclass(frozen=True)
class TrainRequest:
    """One round's work."""

    round: int
    enrolment: str
    model: Arrays
    """θ^c, the global model."""
    shared: Arrays = field(default_factory=dict)
    """What a method broadcasts besides the model; FedRule: the mean d̄ of round `shared_round`."""
    shared_round: int = 0
    """The last round in which this client's reply was counted, 0 for none."""
    statics: Arrays = field(default_factory=dict)
    """Untrained inputs of the model, such as summed counts."""
    phase: str = "local"
    """`local`, or `cluster`: a round's second exchange, in which only shared layers move and which leaves no trace here."""
    cost: float = 0.0
    """What the reply may spend of the client's privacy budget: ρ of zCDP under Gaussian noise, ε under pure mechanisms, RDP at
    one order under DP-SGD; 0 asks for a reply without noise."""
    clip: float = 1.0
    """Factor on the run's clip C, at most 1."""


@dataclass(frozen=True)
class TrainReply:
    """What one client learnt."""

    round: int
    update: Arrays
    """Δ_k = θ^c − θ_k of the layers that are shared; tables may travel as the rows that were touched
    (`common.wire.sparse_rows`), and so in `gradient`."""
    gradient: Arrays
    """s_k, mean corrected gradient along the local path; only where the method asks for it."""
    loss: float
    """Training loss at θ^c, before the first step; 0 in a reply with noise, which hides it."""
    examples: int
    """Records trained on; 1 in a reply with noise."""
    steps: int
    """τ_k, local steps made."""


@dataclass(frozen=True)
class EvaluateRequest:
    """Ask for metrics of the global model on the client's held-out records."""

    round: int
    enrolment: str
    model: Arrays
    split: str
    """`validation` or `test`."""
    statics: Arrays = field(default_factory=dict)
    final: bool = False
    """Whether this is the finished model, which a client keeps for its own recommendations."""


@dataclass(frozen=True)
class EvaluateReply:
    """Per-client means, each with the number of records it is the mean of."""

    round: int
    metrics: Metrics
    weights: Metrics


Payload = (
    EnrolRequest
    | EnrolReply
    | CountsRequest
    | CountsReply
    | AssignRequest
    | AssignReply
    | TrainRequest
    | TrainReply
    | EvaluateRequest
    | EvaluateReply
)
