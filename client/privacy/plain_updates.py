"""Updates without noise and masks: their form in messages."""

from functools import partial

from client.privacy.transforms import Encode, to_packed, to_sparse_rows
from client.trainers.registry import build_trainer
from client.training.client_state import KeepReceived, KeepReleased
from client.training.participant import Participant
from common.config.run import RunConfig


def passes_unchanged(config: RunConfig, participant: Participant) -> bool:
    """Return True if `release_update` changes nothing but the encoding of tables.

    The run has neither noise nor pseudo items nor rounded numbers, and the reply no masks.
    """
    is_rounded = config.federation.encoding != "float32"
    return not (participant.reservation or config.task_options.named_rows or participant.part or is_rounded)


def sends_rows(config: RunConfig) -> bool:
    """Return True if tables in plaintext updates are sent as their touched rows where these are smaller."""
    return config.federation.updates == "auto" and not config.task_options.named_rows


def encode_plain(config: RunConfig, participant: Participant) -> tuple[Encode, ...]:
    """Return the steps that bring a plaintext update into the form in which it is sent."""
    encoding = config.federation.encoding
    rows: tuple[Encode, ...] = (to_sparse_rows,) if sends_rows(config) else ()
    if encoding == "float32":
        return rows
    keep = KeepReceived(KeepReleased(build_trainer(config.method_options), participant), encoding)
    return *rows, partial(to_packed, encoding), keep
