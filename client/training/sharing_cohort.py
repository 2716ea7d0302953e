"""Cohorts whose clients share the rows of tables that they do not touch."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from client.own_rows import OwnRows, own_rows_of
from client.stacked_tensors import Tensors
from client.state import ClientMemory
from client.trainers.spec import Cohort, Trainer
from client.training.client_state import stacked_moments
from client.training.cohort_state import settle
from client.training.participant import Participant
from client.training.rows_of_block import find_own_rows
from client.training.stored_stacks import find_rows, is_one_request
from common.models import tensors


def build_sharing_cohort(
    trainer: Trainer, participants: Sequence[Participant], private: Collection[str]
) -> Cohort | None:
    """Load the client states and build the first parameters, with short tables.

    Return None unless the method treats all numbers alike, and the clients have had all rounds in common.
    """
    options, clients = trainer.options, len(participants)
    is_alike = trainer.acts_on_numbers and options.clip_norm == 0 and options.capabilities().own_model == "none"
    own = find_own_rows(participants) if is_alike and not private else None
    if own is None or not is_one_request([p.request for p in participants]):
        return None
    found, request = _find_state(participants, own), participants[0].request
    if found is None:
        return None
    together, own = found
    start = {
        n: t if n in own.tables else t.expand(clients, *t.shape).contiguous()
        for n, t in own.shorten(tensors(request.model)).items()
    }
    control = settle(trainer, together, request, own.shorten(tensors(request.shared)))
    moments = stacked_moments(options, together, request, start, clients)
    nothing: list[Tensors] = [{}] * clients
    return Cohort(participants, start, moments, control, nothing, nothing, private, stays_stacked=True, own=own)


def _find_state(participants: Sequence[Participant], own: OwnRows) -> tuple[ClientMemory, OwnRows] | None:
    """Return the stacked state of these clients with its rows, an empty one before their first round.

    Args:
        participants: K clients.
        own: Rows that they touch; the state may have further ones.
    """
    memories = [p.store.load(p.run) for p in participants]
    if not any(memory.groups for memory in memories):
        return ClientMemory(), own
    together, places = find_rows(memories, [p.request for p in participants])
    stored = own_rows_of(together.groups) if together else None
    if together is None or stored is None:
        return None
    if len(places) < len(stored.ids):
        together = replace(together, groups=stored.select(together.groups, places))
        stored = replace(stored, ids=stored.ids[places])
    is_same = own.tables == stored.tables and own.ids.equal(stored.ids[:, : own.ids.shape[1]])
    return (together, stored) if is_same else None
