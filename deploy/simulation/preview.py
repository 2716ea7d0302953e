"""Preview of a client: messages of one real round on the owner's data, none of them sent.

Server and client run in this process, with the code of every other run. State and ledger are in memory.
"""

import logging
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Message

from client.data.dataset import AnyDataset
from client.data.read import read_under
from client.owner.policy import Policy
from client.owner.sentences import amount
from client.owner.status import EpsilonSpent, noise_options, read_epsilon
from client.owner.view import CONSTANTS
from client.privacy.claim import Statement
from client.privacy.ledger.database import LOCAL_TRUST
from client.privacy.simulation import ObservedReleaser, ReleasedPair
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from common.arrays import Array, norm
from common.config.run import RunConfig
from common.errors import FedloomError
from common.privacy.accounts import parse_account, serves
from common.privacy.mechanisms import build_account
from common.privacy.options import PrivacyOptions
from common.tasks.names import MOST_NOISED_NAMES
from common.tasks.vocabulary import FEDERATED, Vocabulary
from common.text import count, printable, size
from common.wire.codec import arrays_of, outline
from common.wire.encodings import CODES
from common.wire.messages import AssignReply
from common.wire.sparse_rows import ROWS, VALUES
from deploy.pages.statement import strength
from deploy.simulation.clients import simulated_policy
from deploy.simulation.grid import InProcessGrid
from server.run import run

SHOWN_VALUES = 3
"""Number of example values of an array."""


@dataclass(frozen=True)
class FieldPreview:
    """One field of a reply."""

    name: str
    shape: tuple[int, ...]
    """Shape of an array; empty for a single value."""
    type: str
    """dtype of an array; `int`, `float`, `str` or `bool` otherwise."""
    bytes: int
    protection: str
    """`exact`, `clipped, noised`, `noised`, `in plaintext` or `constant`."""
    norm_before: float | None
    """L2 norm of the exact values; None if no noise is possible, or if it is drawn in the local steps."""
    norm_after: float | None
    """L2 norm of the values that would be sent; None for ids and for values that no noise covers."""
    examples: tuple[Any, ...]
    """First values that are not zero."""


def describe_fields(reply: Message, config: RunConfig, pair: ReleasedPair | None) -> tuple[FieldPreview, ...]:
    """Return the fields of a reply that is no error; `pair` holds its values before and after noise."""
    about, arrays = outline(reply.content), arrays_of(reply.content)
    options = config.privacy
    of_arrays = [_array_field(name, array, options, pair) for name, array in arrays.items()]
    return (
        *of_arrays,
        *(_value_field(about.payload, name, value, options, pair) for name, value in about.values.items()),
    )


def _array_field(name: str, array: Array, options: PrivacyOptions, pair: ReleasedPair | None) -> FieldPreview:
    ids = name.endswith(ROWS) or (pair is not None and name in pair.exact.ids)
    exact = _exact(name, array, options, pair)
    protection = _protection(options, pair, ids=ids)
    before = None if ids or exact is None or name.endswith(CODES) else norm({name: exact})
    shown = np.ravel(array)[np.flatnonzero(array)[:SHOWN_VALUES]]
    after = None if ids or name.endswith(CODES) else norm({name: array})
    examples = tuple(shown.tolist())
    return FieldPreview(name, array.shape, str(array.dtype), array.nbytes, protection, before, after, examples)


def _value_field(
    payload: str, name: str, value: Any, options: PrivacyOptions, pair: ReleasedPair | None
) -> FieldPreview:
    noisy, protection = options.unit != "none", "in plaintext"
    norms: tuple[float | None, float | None] = (None, None)
    if payload == AssignReply.__name__ and name.startswith("losses/") and noisy:
        exact = pair.exact.arrays.get(name.replace("losses/", "loss/", 1)) if pair else None
        protection = _protection(options, pair, ids=False)
        norms = None if exact is None else abs(float(exact)), abs(float(value))
    elif noisy and (name, value) in CONSTANTS.items():
        protection = "constant"
    size = len(value.encode()) if isinstance(value, str) else 8
    return FieldPreview(name, (), type(value).__name__, size, protection, *norms, (value,))


def _protection(options: PrivacyOptions, pair: ReleasedPair | None, *, ids: bool) -> str:
    if options.unit == "none":
        return "exact"
    if ids:
        return "in plaintext"
    if pair is None or not math.isfinite(pair.clip):
        return "noised"
    together = {name: array for name, array in pair.exact.arrays.items() if name not in pair.exact.ids}
    return "clipped, noised" if norm(together) > pair.clip else "noised"


def _exact(name: str, array: Array, options: PrivacyOptions, pair: ReleasedPair | None) -> Array | None:
    if options.unit == "none":
        return array
    if options.unit == "record" or pair is None:
        return None
    return pair.exact.arrays.get(name.removesuffix(VALUES))


CLIENT, TWIN = "preview", "twin"
"""Name of the client in its messages, and of one with the same data that finds names with it."""


class PreviewEndError(FedloomError):
    """End of the first round, after which a preview stops."""


@dataclass(frozen=True)
class MessagePreview:
    """Reply that the client would send."""

    kind: str
    """`enrol`, `names`, `assign`, `train` or `evaluate`."""
    refused: str = ""
    """Reason of a refusal, which is then all that would be sent."""
    fields: tuple[FieldPreview, ...] = ()
    content: bytes = field(default=b"", repr=False)
    """Bytes of the message's content as they would be sent."""


@dataclass(frozen=True)
class Preview:
    """Messages of an enrolment and of the first round."""

    config: RunConfig
    messages: tuple[MessagePreview, ...]
    """Messages in the order in which they would be sent."""
    refusals: tuple[MessagePreview, ...]
    """Refusals by the owner's policy; the messages are then those of a client without a policy."""
    epsilon: EpsilonSpent | None
    """ε that the first round costs; None without noise."""
    failure: str = ""
    """Reason why the round could not be completed; empty if it was."""


def preview_messages(config: RunConfig, data: AnyDataset, policy: Policy) -> Preview:
    """Make one round on the data and return what the client would send.

    If the policy refuses the run or a part of it, the round is made again without a policy.
    """
    preview = _first_round(config, data, policy)
    if not preview.refusals:
        return preview
    allowed = _first_round(config, data, simulated_policy())
    return Preview(config, allowed.messages, preview.refusals, allowed.epsilon, allowed.failure)


def _first_round(config: RunConfig, data: AnyDataset, policy: Policy) -> Preview:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, read_under(config.task, data, vocabulary) if shows_names else data)

    shows_names = config.catalogue == FEDERATED and config.privacy.unit == "none"
    releaser = ObservedReleaser(policy)
    sessions = [
        Session(name, learner, MemoryStore(), each, read_names=lambda config: data.vocabulary)
        for name, each in {CLIENT: releaser, **({TWIN: ObservedReleaser(policy)} if shows_names else {})}.items()
    ]
    failure = ""
    grid = _FirstRoundGrid(sessions, releaser)
    logs = logging.getLogger("fedloom")
    level = logs.level
    logs.setLevel(logging.CRITICAL)  # of the server and the client in this process
    try:
        with tempfile.TemporaryDirectory(prefix="fedloom-preview-") as runs:
            vocabulary = Path(runs) / "vocabulary.json"
            vocabulary.write_text(data.vocabulary.to_json(), "utf-8")
            trust = {"trust": LOCAL_TRUST} if shows_names else {}
            privacy = config.privacy.model_copy(update={"accept_noise": True, **trust})  # one client is no federation
            twins = config.federation.model_copy(update={"min_holders": len(sessions)} if shows_names else {})
            names = FEDERATED if shows_names else str(vocabulary)
            changed = {"catalogue": names, "privacy": privacy, "federation": twins, "start_from": "", "half_life": 0.0}
            run(grid, config.model_copy(update=changed), Path(runs))
    except PreviewEndError:
        pass
    except FedloomError as error:
        failure = str(error)
    finally:
        logs.setLevel(level)
    refusals = tuple(message for message in grid.messages if message.refused)
    epsilon = read_epsilon(releaser.budget, config, grid.enrolment) if grid.enrolment else None
    return Preview(config, tuple(m for m in grid.messages if not m.refused), refusals, epsilon, failure)


class _FirstRoundGrid(InProcessGrid):
    """Grid of one client, or of two, that records the replies of the first and ends with the first round."""

    def __init__(self, sessions: Sequence[Session], releaser: ObservedReleaser) -> None:
        super().__init__(dict(enumerate(sessions, start=1)), together=1)
        self._releaser = releaser
        self.messages: list[MessagePreview] = []
        self.enrolment = ""

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer all messages and record the replies.

        Raises:
            PreviewEndError: The messages belong to the second round, or an evaluation has ended the first.
        """
        messages = list(messages)
        for message in messages:
            if outline(message.content).values.get("round", 0) > 1:
                raise PreviewEndError("the first round is over")
        seen = len(self._releaser.pairs)
        ids = super().push_messages(messages)
        for message in [message for message in messages if message.metadata.dst_node_id == 1]:
            self._record(message, self._replies[message.metadata.message_id], seen)
        return ids

    def _train(self, messages: Sequence[Message]) -> list[Message]:
        """Train as a client of its own does: its reply is released and encoded, not handed over."""
        return self._answer(messages)

    def _record(self, message: Message, reply: Message, seen: int) -> None:
        kind = message.metadata.message_type.rpartition(".")[2]
        if reply.has_error():
            refusal = MessagePreview(kind, reply.error.reason or "no reason")
            self.messages += [] if refusal in self.messages else [refusal]
            return
        self.enrolment = str(outline(reply.content).values.get("enrolment", self.enrolment))
        config = self._sessions[1].config(self.enrolment)
        pairs = self._releaser.pairs[seen:]
        fields = describe_fields(reply, config, pairs[-1] if pairs else None)
        self.messages.append(MessagePreview(kind, "", fields, reply.content.config_records["fedloom"].deflate()))


REASON_LENGTH = 500
"""Maximum number of characters of a reason."""


@dataclass(frozen=True)
class LedgerCost:
    """Cost of a whole run against one account of a ledger."""

    ledger: str
    spent: float
    """ε spent until now."""
    limit: float | None
    """ε over all runs; None without a limit."""
    after: float | None
    """ε after the run; None if the ledger counts in another account."""

    @property
    def is_affordable(self) -> bool:
        """True if the whole run fits into the remaining budget."""
        return self.after is not None and (self.limit is None or self.after <= self.limit * (1 + 1e-9))


def ledger_costs(config: RunConfig, statements: Sequence[Statement]) -> list[LedgerCost]:
    """Return the costs of a run with noise against the ledgers of its data."""
    options = noise_options(config)
    if options is None:
        return []
    account, found = build_account(options), []
    for claim, path in ((one.claim, one.ledger) for one in statements if one.claim.unit == options.unit):
        after = None
        if serves(parse_account(claim.account), account):
            total = claim.spent + account.total(options.epsilon, options.delta)
            after = parse_account(claim.account).claim(total, claim.delta or options.delta)
        found.append(LedgerCost(path, claim.epsilon_so_far, claim.epsilon if claim.limited else None, after))
    return found


def lines_of(preview: Preview, costs: Sequence[LedgerCost], *, details: bool = False) -> Iterator[str]:
    """Iterate over the lines after the sentences; with `details` every field of every message."""
    config = preview.config
    yield f"task {config.task}, method {config.method}, {count(config.rounds, 'round')}; one round was made, nothing was sent"
    yield from _name_lines(config)
    for refusal in preview.refusals:
        yield f"refused ({refusal.kind}): {printable(refusal.refused, REASON_LENGTH)}"
    for number, message in enumerate(preview.messages, start=1):
        yield f"{number}. {message.kind}, {size(len(message.content))}"
        yield from _table(message) if details else ()
    channels = [channel for phase in config.phases for channel in phase.method_options.uncovered()]
    for channel in channels if config.privacy.unit == "none" else ():
        yield f"not protected: {channel}"
    if preview.failure:
        yield f"the round ended early: {printable(preview.failure, REASON_LENGTH)}"
    yield from _cost_lines(preview, costs)


def sentences(preview: Preview) -> Iterator[str]:
    """Yield a refusal, and three sentences: what leaves, what it may reveal, what noise leaves of it."""
    config = preview.config
    if preview.refusals:
        yield "This client would refuse, for the reason below: nothing else leaves. Under a policy that allows the run:"
    fields = [field for message in preview.messages if message.kind == "train" for field in message.fields]
    values = [field for field in fields if field.shape and field.norm_after is not None]
    numbers = sum(math.prod(field.shape) for field in values)
    is_solved, rounds = config.capabilities.closed_form, count(config.rounds, "round")
    form = "statistics of your data" if is_solved else "a change of the model"
    each = "the first" if is_solved and config.rounds > 1 else "each"  # of the sums, each has a size of its own
    plain = [text for name, text in PLAIN.items() if _is_plain(fields, name) and not (is_solved and name == "loss")]
    measured = [field.name for message in preview.messages if message.kind == "evaluate" for field in message.fields]
    if any(name.startswith("metrics/") for name in measured):
        plain.append("metrics on your held-out data")
    beside = f", and in plaintext {', '.join(plain)}" if plain else ""
    yield f"What leaves: {form}, {numbers:,} numbers in {each} of {rounds}{beside}."
    options = noise_options(config)
    if options is None:
        yield "What it may reveal: these values are exact, so who sees them may find out what your data hold."
        yield "Noise: none, so nothing bounds what can be inferred; masks of helpers would hide them in a sum."
        return
    before, after = (
        math.hypot(*(getattr(one, name) or 0.0 for one in values)) for name in ("norm_before", "norm_after")
    )
    yield f"What it may reveal: bounded for each {options.unit} by ε = {options.epsilon:g}, {strength(options.epsilon)}."
    share = "; hardly anything of one reply is yours" if before < after / 10 else ""
    yield f"Noise: the values have length {before:.2g} before and {after:.2g} after it{share}."


PLAIN = {"examples": "your number of records", "loss": "your training loss"}
"""Field of a reply -> its words."""


def _is_plain(fields: Sequence[FieldPreview], name: str) -> bool:
    return any(field.name == name and field.protection == "in plaintext" for field in fields)


def _name_lines(config: RunConfig) -> Iterator[str]:
    """Yield what the names of a vocabulary that clients find show of these data."""
    if config.catalogue == FEDERATED and config.privacy.unit == "none":
        yield (
            "vocabulary: clients find it; the messages of names have hashes of the names in these data, then the names that"
            " other clients have too; here all of them, in plaintext; helpers mask both"
        )
    elif config.catalogue == FEDERATED:
        yield (
            f"vocabulary: clients find it; under masks leave hashes of at most {MOST_NOISED_NAMES} names in these data, with"
            f" noise of helpers for {config.privacy.name_share:.0%} of ε's cost, then the names that many clients have; no"
            " helpers are here, so these two messages are not shown"
        )


def as_json(preview: Preview, costs: Sequence[LedgerCost]) -> dict[str, Any]:
    """Return a preview as a JSON object."""
    messages = [
        {"kind": one.kind, "bytes": len(one.content), "fields": [asdict(field) for field in one.fields]}
        for one in preview.messages
    ]
    config = preview.config
    return {
        "task": config.task,
        "method": config.method,
        "rounds": config.rounds,
        "messages": messages,
        "refused": [{"kind": one.kind, "reason": one.refused} for one in preview.refusals],
        "failure": preview.failure,
        "epsilon_round": preview.epsilon.run if preview.epsilon else None,
        "epsilon_run": preview.epsilon.run_limit if preview.epsilon else None,
        "ledgers": [{**asdict(cost), "affordable": cost.is_affordable} for cost in costs],
    }


def _table(message: MessagePreview) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("field", "shape", "type", "bytes", "protection", "norm before", "after", "values")]
    rows += [_row(field) for field in message.fields]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"   {'  '.join((*cells, row[-1]))}"


def _row(field: FieldPreview) -> tuple[str, ...]:
    shape = "×".join(map(str, field.shape)) or "-"
    values = ", ".join(f"{v:.3g}" if isinstance(v, float) else printable(str(v), 40) for v in field.examples)
    norms = ["-" if norm is None else f"{norm:.3g}" for norm in (field.norm_before, field.norm_after)]
    return printable(field.name, 80), shape, field.type, str(field.bytes), field.protection, *norms, values


def _cost_lines(preview: Preview, costs: Sequence[LedgerCost]) -> Iterator[str]:
    epsilon, options = preview.epsilon, noise_options(preview.config)
    if options is None:
        return
    if epsilon:
        yield f"this round costs ε {amount(epsilon.run)} of the run's ε {epsilon.run_limit:g} (unit {options.unit})"
    if not costs:
        yield "these data have no releases under this unit in a ledger yet"
    for cost in costs:
        limit = f" of {cost.limit:g}" if cost.limit is not None else ", no limit over all runs"
        yield f"ledger {cost.ledger}: ε {amount(cost.spent)} spent{limit}; {_after(cost)}"


def _after(cost: LedgerCost) -> str:
    if cost.after is None:
        return "it counts in another account, so the run would be refused"
    within = "" if cost.is_affordable else ", more than the limit: the client stops when it is reached"
    return f"ε {amount(cost.after)} after the whole run{within}"
