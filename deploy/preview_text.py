"""Text and JSON of a preview, and its cost against a privacy ledger."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from client.owner.sentences import amount
from client.privacy.claim import Statement
from client.privacy.epsilon_spent import noise_options
from common.config.run import RunConfig
from common.privacy.accounts import parse_account
from common.privacy.mechanisms.registry import build_account
from common.text import count, printable, size
from deploy.preview import MessagePreview, Preview
from deploy.preview_fields import FieldPreview

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
        if claim.account == account.name:
            total = claim.spent + account.total(options.epsilon, options.delta)
            after = parse_account(claim.account).claim(total, claim.delta or options.delta)
        found.append(LedgerCost(path, claim.epsilon_so_far, claim.epsilon if claim.limited else None, after))
    return found


def lines_of(preview: Preview, costs: Sequence[LedgerCost]) -> Iterator[str]:
    """Iterate over the lines of a preview."""
    config = preview.config
    yield f"task {config.task}, method {config.method}, {count(config.rounds, 'round')}; one round was made, nothing was sent"
    for refusal in preview.refusals:
        yield f"refused ({refusal.kind}): {printable(refusal.refused, REASON_LENGTH)}"
    if preview.refusals:
        yield "this client would send the refusal only; the messages below are those without this policy"
    for number, message in enumerate(preview.messages, start=1):
        yield f"{number}. {message.kind}, {size(len(message.content))}"
        yield from _table(message)
    if preview.failure:
        yield f"the round ended early: {printable(preview.failure, REASON_LENGTH)}"
    yield from _cost_lines(preview, costs)


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
        yield "without noise: no privacy cost, and no guarantee; exact values may reveal information about the data"
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
