"""Privacy statement of a run, with its trust and its secure sums."""

from collections.abc import Iterable
from dataclasses import replace

from common.config.run import RunConfig
from common.secure.cards import HelperRoster
from server.enrolment import Enrolment
from server.events import Event
from server.privacy_statement import statement
from server.result import Privacy
from server.sum_event import Sum


def describe_privacy(config: RunConfig, enrolment: Enrolment, sharing: int, events: Iterable[Event]) -> Privacy:
    """Return the privacy statement of a run.

    Args:
        config: Configuration of the run.
        enrolment: Clients and helpers of the run.
        sharing: Number of clients that sent their metrics.
        events: Events of the run.
    """
    spent = enrolment.roster.spent
    if not enrolment.helpers:
        return statement(config, spent, sharing)
    helpers = {card.name: card.fingerprint for card in HelperRoster.read(enrolment.helpers, config.run_id).cards}
    lost = [bool(event.lost) for event in events if isinstance(event, Sum)]
    return replace(
        statement(config, spent, sharing, [*helpers]),
        trust="helpers",
        helpers=helpers,
        min_sum=config.secure_sums.min_sum,
        sums={"opened": lost.count(False), "lost": lost.count(True)},
    )
