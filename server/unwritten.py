"""Line of a round that is kept with its checkpoint, until the round's evaluation completes it.

A checkpoint precedes the evaluation of its round. A run that is killed in between evaluates the model again after
`--resume`, and writes the line then.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from common.errors import DataError
from common.text import printable
from server.evaluation import Evaluation
from server.events import Round, Split, event_from_line, event_to_line
from server.exchange import Exchange
from server.loss_watch import median_loss


def to_json(event: Round) -> str:
    """Return a line as the text that a checkpoint keeps."""
    return event_to_line(event).decode()


def find_unwritten(totals: dict[str, Any], written: Sequence[Round]) -> Round | None:
    """Return the line that a checkpoint keeps, if the newest written one is of an earlier round."""
    try:
        event = event_from_line(totals.get("line", ""))
    except DataError:  # of a release without these lines
        return None
    newest = max((one.round for one in written), default=0)
    return event if isinstance(event, Round) and event.round > newest else None


def complete(event: Round, evaluation: Evaluation, split: Split, exchanges: Sequence[Exchange]) -> Round:
    """Return a kept line with the evaluation of its round and the traffic since."""
    dropped = {client: printable(f"evaluation: {why}") for client, why in evaluation.dropped.items()}
    return replace(
        event,
        metrics=dict(evaluation.metrics),
        median_loss=median_loss(evaluation),
        split=split if evaluation.metrics else "",
        seconds=event.seconds + sum(exchange.seconds for exchange in exchanges),
        refused={**event.refused, **dropped},
        bytes_down=event.bytes_down + sum(exchange.bytes_down for exchange in exchanges),
        bytes_up=event.bytes_up + sum(exchange.bytes_up for exchange in exchanges),
        server={**event.server, **evaluation.notes},
    )
