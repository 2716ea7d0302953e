"""Contract of a client with a server: terms of a run, their text and hash, and their comparison."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from common.config.run import RunConfig, find_obstacle
from common.privacy.options import MechanismName, ResolvedTrust, Unit
from common.tasks.vocabulary import FEDERATED
from common.text import count, printable
from common.wire.messages import LOCAL

Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
"""Name of a task or a method."""

HelperKey = Annotated[str, StringConstraints(pattern="^SHA256:[A-Za-z0-9+/]{43}$")]
"""Fingerprint of a helper's node key, as `fedloom keys show` prints it."""

Channel = Literal["item ids", "metrics", "names", "number of records", "statistics", "updates"]
"""Values of one client that leave it without noise and outside secure sums."""

SHORT = 16
"""Number of characters of a hash that a person reads."""


class Contract(BaseModel):
    """Terms of a run, or the most that an owner has agreed to; without a number there is no limit.

    `trust` has the parties that noise or masks may rely on. `helpers` are the helpers that take part, by their keys.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tasks: tuple[Word, ...]
    methods: tuple[Word, ...]
    rounds: int | None = Field(None, ge=1, lt=2**31)
    local_steps: int | None = Field(None, ge=0, lt=2**31)
    unit: Unit = "none"
    mechanism: MechanismName = "gaussian"
    epsilon: float | None = Field(None, gt=0, allow_inf_nan=False)
    delta: float | None = Field(None, gt=0, lt=1)
    trust: tuple[ResolvedTrust, ...]
    helpers: tuple[HelperKey, ...] = ()
    min_sum: int = Field(1, ge=1, le=100_000)
    plaintext: tuple[Channel, ...] = ()

    @model_validator(mode="after")
    def _check_noise(self) -> Self:
        if self.unit == "none" and self.epsilon is not None:
            raise ValueError("epsilon needs a privacy unit")
        return self

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical text, in hexadecimal."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    @property
    def short_hash(self) -> str:
        """Beginning of the hash, for a person."""
        return self.hash[:SHORT]

    def canonical(self) -> str:
        """Return the terms as JSON with sorted keys and without spaces."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def rows(self) -> dict[str, str]:
        """Return label -> text of each term."""
        return {label: term.text(self) for label, term in TERMS.items()}

    def lines(self) -> list[str]:
        """Return the terms for a person, one line each."""
        return [f"  {label:<12}{text}" for label, text in self.rows().items()]

    def beyond(self, agreed: "Contract") -> dict[str, tuple[str, str]]:
        """Return label -> (agreed text, text of these terms) where these ask for more or protect less."""
        return {
            label: (term.text(agreed), term.text(self))
            for label, term in TERMS.items()
            if not term.is_within(self, agreed)
        }


class Term(NamedTuple):
    """Text of a term, and the predicate (offered, agreed) that is True if the offer stays within."""

    text: Callable[[Contract], str]
    is_within: Callable[[Contract, Contract], bool]


def _privacy(terms: Contract) -> str:
    if terms.unit == "none":
        return "no noise"
    limit = "any ε" if terms.epsilon is None else f"ε = {terms.epsilon:g}, δ = {terms.delta or 0.0:g}"
    sent = "everything that a client sends" if terms.unit == "client" else "each record of a client"
    return f"noise on {sent}: {limit} ({terms.mechanism})"


def _is_as_private(offered: Contract, agreed: Contract) -> bool:
    if agreed.unit == "none":
        return True
    limits = (offered.epsilon, agreed.epsilon), (offered.delta, agreed.delta)
    return offered.unit == agreed.unit and all(_is_at_most(*pair) for pair in limits)


def _is_at_most(offered: float | None, agreed: float | None) -> bool:
    return agreed is None or (offered is not None and offered <= agreed)


_TRUSTS: dict[ResolvedTrust, dict[bool, str]] = {
    "local": {True: "no other party: each client draws its noise", False: "the server, which sees single replies"},
    "helpers": {
        True: "helpers that add noise to sums of clients",
        False: "helpers that mask replies in sums of clients",
    },
}


def _trust(terms: Contract) -> str:
    return ", or ".join(_TRUSTS[one][terms.unit != "none"] for one in terms.trust) or "nobody"


def _limit(number: int | None, noun: str) -> str:
    return f"any number of {noun}s" if number is None else count(number, noun)


TERMS: dict[str, Term] = {
    "task": Term(lambda of: ", ".join(of.tasks) or "none", lambda offered, agreed: {*offered.tasks} <= {*agreed.tasks}),
    "method": Term(
        lambda of: ", ".join(of.methods) or "none", lambda offered, agreed: {*offered.methods} <= {*agreed.methods}
    ),
    "length": Term(
        lambda of: f"{_limit(of.rounds, 'round')}, {_limit(of.local_steps, 'local step')} a round",
        lambda offered, agreed: (
            _is_at_most(offered.rounds, agreed.rounds) and _is_at_most(offered.local_steps, agreed.local_steps)
        ),
    ),
    "privacy": Term(_privacy, _is_as_private),
    "trust": Term(
        _trust,  # helpers protect more than a reply in plaintext
        lambda of, agreed: {*of.trust} <= {*agreed.trust} or (agreed.unit == "none" and "local" in agreed.trust),
    ),
    "helpers": Term(
        lambda of: ", ".join(of.helpers) or ("any that the server names" if "helpers" in of.trust else "none"),
        lambda offered, agreed: {*agreed.helpers} <= {*offered.helpers},
    ),
    "sums": Term(
        lambda of: f"at least {count(of.min_sum, 'client')}" if of.min_sum > 1 else "of any number of clients",
        lambda offered, agreed: offered.min_sum >= agreed.min_sum,
    ),
    "plaintext": Term(
        lambda of: ", ".join(of.plaintext) or "nothing",
        lambda offered, agreed: {*offered.plaintext} <= {*agreed.plaintext},
    ),
}
"""Label -> term, in the order of the text."""


def terms_of(config: RunConfig, helpers: Collection[str] = (), *, is_started: bool = True) -> Contract:
    """Return the terms of a run with these helpers, by their keys.

    Before its start, a run with `privacy.trust=auto` may rely on helpers or not, and the terms allow both.
    """
    privacy, method = config.privacy, config.method_options
    is_open = not is_started and privacy.trust == "auto" and not find_obstacle(config)
    trust: tuple[ResolvedTrust, ...] = ("helpers", "local") if is_open else (privacy.resolved_trust,)
    has_noise, is_alone, is_closed = privacy.unit != "none", "local" in trust, config.capabilities.closed_form
    plaintext = set[Channel]()
    if is_alone and not has_noise:
        plaintext = {"statistics" if is_closed else "updates", "metrics", "number of records"}
    if is_alone and config.catalogue == FEDERATED:
        plaintext.add("names")
    if config.task_options.named_rows:
        plaintext.add("item ids")
    return Contract(
        tasks=(config.task,),
        methods=tuple(dict.fromkeys((config.method, method.name))),
        rounds=config.rounds,
        local_steps=0 if is_closed else method.steps(LOCAL),
        unit=privacy.unit,
        mechanism=privacy.mechanism,
        epsilon=privacy.epsilon if has_noise else None,
        delta=privacy.delta if has_noise else None,
        trust=trust,
        helpers=tuple(sorted(helpers)),
        min_sum=1 if is_alone else config.secure_sums.min_sum,
        plaintext=tuple(sorted(plaintext)),
    )


def side_by_side(agreed: Contract, offered: Contract) -> Iterator[str]:
    """Yield the lines of both texts in two columns; a line that exceeds the agreement begins with `>`."""
    left, right, beyond = agreed.rows(), offered.rows(), offered.beyond(agreed)
    width = max(map(len, left.values()))
    yield f"  {'':<12}{f'agreed ({agreed.short_hash})':<{width}} | offered ({offered.short_hash})"
    for label, text in left.items():
        yield f"{'>' if label in beyond else ' '} {label:<12}{text:<{width}} | {right[label]}"


def describe_beyond(agreed: Contract, offered: Contract) -> str:
    """Return one line on all that exceeds the agreement, with both texts."""
    pairs = offered.beyond(agreed).items()
    return printable("; ".join(f"{label}: agreed '{was}', offered '{now}'" for label, (was, now) in pairs), 1_000)
