"""Parts of automations that are not read, counted by reason with the first place of each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from client.tasks.rules.data.home_assistant.document import Block
from common.text import count

BLUEPRINT = "automation by blueprint"
TEMPLATE = "template"
TAG = "value of a tag such as !secret"
NOTIFICATION = "notification"
SCENE = "scene or script"
NO_REGISTRY = "device or area without entities in the registry"
TRIGGER = "trigger of another kind"
STATE = "state outside the public table"
SERVICE = "service outside the public table"
DEVICE = "device type outside the public table"
DISABLED = "disabled part"
MALFORMED = "malformed part"
PRODUCT = "automation with too many combinations"
NO_EVENT = "automation without a device that triggers it"
NO_CALL = "automation without a device that it acts on"
CONDITION = "condition"

PLURALS = {
    BLUEPRINT: "automations by blueprint",
    TAG: "values of tags such as !secret",
    SCENE: "scenes and scripts",
    NO_REGISTRY: "devices or areas without entities in the registry",
    TRIGGER: "triggers of other kinds",
    STATE: "states outside the public table",
    SERVICE: "services outside the public table",
    DEVICE: "device types outside the public table",
    PRODUCT: "automations with too many combinations",
    NO_EVENT: "automations without a device that triggers them",
    NO_CALL: "automations without a device that they act on",
}


@dataclass
class Tally:
    """Counts by reason.

    Args:
        file: File that is read, as it is named in notes.
        line: Line of the automation that is read.
        counts: Reason -> number of parts and place of the first.
        automations: Number of automations.
        read: Number of automations with a rule.
    """

    file: str = ""
    line: int = 0
    counts: dict[str, tuple[int, str]] = field(default_factory=dict)
    automations: int = 0
    read: int = 0

    def add(self, reason: str, part: Any = None) -> None:
        """Count a part, at its own line if it is a block."""
        line = part.line if isinstance(part, Block) else self.line
        number, first = self.counts.get(reason, (0, f"{self.file}, line {line}"))
        self.counts[reason] = number + 1, first

    def notes(self) -> Iterator[str]:
        """Yield what was read, and what was not with the first place."""
        yield f"{self.read:,} of {count(self.automations, 'automation')} read as rules"
        for reason, (number, first) in self.counts.items():
            noun = reason if number == 1 else PLURALS.get(reason, f"{reason}s")
            yield f"{number:,} {noun} {'ignored' if reason == CONDITION else 'not read'}; the first: {first}"
