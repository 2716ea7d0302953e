"""Updates without noise and masks: their form in messages."""

from client.training.participant import Participant
from common.config.run import RunConfig


def passes_unchanged(config: RunConfig, participant: Participant) -> bool:
    """Return True if `release_update` changes nothing but the encoding of tables.

    The run has neither noise nor pseudo items, and the reply no masks.
    """
    return not (participant.reservation or config.task_options.named_rows or participant.part)


def sends_rows(config: RunConfig) -> bool:
    """Return True if tables in plaintext updates are sent as their touched rows where these are smaller."""
    return config.federation.updates == "auto" and not config.task_options.named_rows
