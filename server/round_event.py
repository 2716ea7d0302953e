"""Event of a round, from its exchanges, training step, evaluation and clients; pure."""

from collections.abc import Callable, Collection, Mapping, Sequence

from common.text import printable
from common.wire.messages import EVALUATE, TRAIN
from server.evaluation import Evaluation
from server.events import Round, Split
from server.exchange import Exchange, summarize_exchange
from server.loss_watch import median_loss
from server.presence import Attendance
from server.state import Trained


def find_training(exchanges: Sequence[Exchange]) -> Exchange:
    """Return the exchange in which the clients of a round trained first; an empty one without any."""
    return next((exchange for exchange in exchanges if exchange.kind == TRAIN), summarize_exchange([], [], 0.0))


def has_missing(exchanges: Sequence[Exchange], quorum: int) -> bool:
    """Return True if clients that did not answer the last training request could complete a quorum."""
    training = next((exchange for exchange in reversed(exchanges) if exchange.kind == TRAIN), None)
    return training is not None and len(training.asked) - len(training.failed) >= quorum and bool(training.missing)


def describe_round(
    trained: Trained,
    evaluation: Evaluation,
    exchanges: Sequence[Exchange],
    attendance: Attendance,
    name: Callable[[int], str],
    *,
    rounds: int,
    split: Split,
    refused: Mapping[str, str],
) -> Round:
    """Return the event of a round.

    Args:
        trained: Training step.
        evaluation: Metrics; empty if the round was not evaluated.
        exchanges: Exchanges of the round, the first training among them.
        attendance: Clients of the round.
        name: Name of a node.
        rounds: Number of rounds of the run.
        split: Data split of the metrics.
        refused: Node or client -> reason of refusals that no event has named.
    """
    training = find_training(exchanges)
    reasons = _list_unmeasured(exchanges, name, set(training.missing))
    reasons |= {client: f"evaluation: {why}" for client, why in evaluation.dropped.items()}
    reasons |= {
        **refused,
        **{client: why for client, why in attendance.lost.items() if why},
        **trained.excluded,
        **trained.rejected,
    }
    missing = {name(node) for node in training.missing} | {n for n, why in attendance.lost.items() if not why}
    return Round(
        round=trained.state.round,
        rounds=rounds,
        loss=trained.loss,
        metrics=dict(evaluation.metrics),
        split=split if evaluation.metrics else "",
        seconds=sum(exchange.seconds for exchange in exchanges),
        answered=max(len(training.durations) - len(trained.rejected), 0),
        asked=len({name(node) for node in training.asked} | attendance.lost.keys()),
        missing=sorted(client for client in missing if not attendance.lost.get(client)),
        refused={client: printable(why) for client, why in reasons.items()},
        shortened=dict(trained.shortened),
        bytes_down=sum(exchange.bytes_down for exchange in exchanges),
        bytes_up=sum(exchange.bytes_up for exchange in exchanges),
        server={**trained.server, **evaluation.notes},
        clusters=dict(trained.groups),
        median_loss=median_loss(evaluation),
        clients=attendance.clients,
        states=attendance.states,
        gone=attendance.gone,
    )


def _list_unmeasured(
    exchanges: Sequence[Exchange], name: Callable[[int], str], missing: Collection[int]
) -> dict[str, str]:
    """Return clients without metrics and the reasons; `missing` nodes did not answer in training either."""
    reasons: dict[int, str] = {}
    for exchange in exchanges:
        if exchange.kind == EVALUATE:
            reasons |= dict.fromkeys(exchange.missing, "evaluation: no answer")
            reasons |= {node: f"evaluation: {why}" for node, why in exchange.failed.items()}
    return {name(node): why for node, why in reasons.items() if node not in missing}
