"""From rules as text, one a row, to homes; the half that all readers share."""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from client.tasks.rules.data.homes import Device, Home, Homes, as_edges
from common.errors import DataError, VocabularyError
from common.tasks.rules.vocabulary import SEPARATOR, RuleCatalogue, relation_name


class Row(NamedTuple):
    """One rule of one user; a row without trigger state and action only says that the user owns these devices."""

    user: str
    trigger_device: str
    trigger_id: str
    trigger_state: str
    action: str
    action_device: str
    action_id: str
    path: str = ""
    line: int = 0

    @property
    def relation(self) -> str:
        """The trigger-action pair's name, empty if the row holds no rule."""
        try:
            return relation_name(self.trigger_state, self.action) if self.trigger_state or self.action else ""
        except ValueError:
            message = f"trigger state and action must not be empty and must not contain '{SEPARATOR}'"
            raise DataError(message, self.path, self.line) from None

    @property
    def devices(self) -> tuple[tuple[str, str], ...]:
        """(id, type) of the devices named; one or two, trigger first."""
        named = ((self.trigger_id, self.trigger_device), (self.action_id, self.action_device))
        return named if self.action_device else named[:1]


def derive_catalogue(rows: Iterable[Row]) -> RuleCatalogue:
    """The vocabulary that the rows use, in alphabetical order."""
    entities: set[str] = set()
    relations: set[str] = set()
    for row in rows:
        entities.update(kind for _, kind in row.devices)
        relations.add(row.relation)
    return RuleCatalogue(entities=tuple(sorted(entities)), relations=tuple(sorted(relations - {""})))


def to_dataset(rows: Sequence[Row], catalogue: RuleCatalogue | None = None) -> Homes:
    """Homes from rows in any order; `catalogue` is derived from them if not given.

    Raises:
        VocabularyError: Rows use a device type or relation that the catalogue lacks.
    """
    catalogue = catalogue or derive_catalogue(rows)
    entities = {name: k for k, name in enumerate(catalogue.entities)}
    relations = {name: k for k, name in enumerate(catalogue.relations)}
    _check_vocabulary(rows, entities, relations)

    by_user: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_user[row.user].append(row)
    homes = tuple(_home(user, by_user[user], entities, relations) for user in sorted(by_user))
    duplicates = sum(1 for row in rows if row.relation) - sum(len(home.rules) for home in homes)
    notes = (f"{duplicates} duplicate rule{'s' * (duplicates != 1)} dropped",) if duplicates else ()
    return Homes(homes, catalogue, notes)


def _home(user: str, rows: Sequence[Row], entities: dict[str, int], relations: dict[str, int]) -> Home:
    keys = sorted({key for row in rows for key in row.devices})
    node = {key: k for k, key in enumerate(keys)}
    rules = as_edges(
        (node[row.devices[0]], node[row.devices[1]], relations[row.relation]) for row in rows if row.relation
    )
    return Home(user, tuple(Device(name, entities[kind]) for name, kind in keys), rules)


def _check_vocabulary(rows: Sequence[Row], entities: dict[str, int], relations: dict[str, int]) -> None:
    """Name the first row that the catalogue cannot express by its place, not by its private content."""
    strangers = [(row, name) for row in rows for name in (_unknown(row, entities, relations),) if name]
    if not strangers:
        return
    row, column = strangers[0]
    is_relation = column == "trigger_state"
    what, known = ("trigger-action pair", relations) if is_relation else ("device type", entities)
    closest = difflib.get_close_matches(row.relation if is_relation else getattr(row, column), known, n=1)
    hint = f"; the nearest it has is '{closest[0]}'" if closest else ""
    message = (
        f"the federation's catalogue lacks this {what}{hint}. It cannot express {len(strangers)} of {len(rows)} rows: "
        "rename or remove them, or ask the federation to extend its catalogue"
    )
    raise VocabularyError(message, row.path, row.line, column)


def _unknown(row: Row, entities: dict[str, int], relations: dict[str, int]) -> str:
    for column, (_, kind) in zip(("trigger_device", "action_device"), row.devices, strict=False):
        if kind not in entities:
            return column
    return "trigger_state" if row.relation and row.relation not in relations else ""
