"""YAML of Home Assistant as plain data, with the unread items counted by reason."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from client.data.tables.files import reading
from common.errors import DataError
from common.text import count

MOST_BYTES, MOST_NODES, DEEPEST = 8 * 2**20, 200_000, 50
"""Limits of a file: bytes, nodes with aliases expanded, and levels."""


class Block(dict[Any, Any]):
    """Mapping with the line of its first key, from 1."""

    line: int = 0


class Unread:
    """Value of a tag that is not read, such as `!secret` or `!input`."""

    def __init__(self, tag: str) -> None:
        self.tag = tag


class PlainLoader(yaml.CSafeLoader):
    """Loader of text, lists and mappings; `on` and `07:30` stay text, and unknown tags are `Unread`."""


PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag == "tag:yaml.org,2002:merge"]
    for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _block(loader: PlainLoader, node: yaml.MappingNode) -> Iterator[Block]:
    block = Block()
    block.line = node.start_mark.line + 1
    yield block
    block.update(loader.construct_mapping(node))


PlainLoader.add_constructor("tag:yaml.org,2002:map", _block)
PlainLoader.add_constructor(None, lambda loader, node: Unread(str(node.tag)))


def load_yaml(path: Path) -> Any:
    """Return the content of a YAML file.

    Raises:
        DataError: The file is too large, too deep, no YAML or no text in UTF-8; with the line if it is certain.
    """
    with reading(path), path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise DataError(f"longer than {MOST_BYTES:,} bytes; split the file", path)
    try:
        text = data.decode("utf-8-sig")
        _check_size(text, path)
        return yaml.load(text, Loader=PlainLoader)  # a subclass of the safe loader
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError("not text in UTF-8; save the file as UTF-8", path, line) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"not YAML ({error.problem or error.context}); correct it, as Home Assistant's own check would say"
        raise DataError(message, path, mark.line + 1 if mark else 0) from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"not YAML ({type(error).__name__}); correct it", path) from None


def _check_size(text: str, path: Path) -> None:
    """Accept a document of at most `MOST_NODES` nodes and `DEEPEST` levels.

    Aliases count as what they stand for.

    Raises:
        DataError: The document is larger, or an alias stands within its own anchor.
    """
    sizes: dict[str, int] = {}
    anchors: list[tuple[str | None, int]] = []
    nodes = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in anchors):
                raise DataError("an alias stands within its own anchor; write the value out", path, line)
            nodes += sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.NodeEvent):
            nodes += 1
            if isinstance(event, yaml.ScalarEvent):
                sizes |= {event.anchor: 1} if event.anchor else {}
            else:
                anchors.append((event.anchor, nodes - 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = anchors.pop()
            sizes |= {anchor: nodes - before} if anchor else {}
        if nodes > MOST_NODES:
            raise DataError(f"more than {MOST_NODES:,} values, aliases expanded; split the file", path, line)
        if len(anchors) > DEEPEST:
            raise DataError(f"more than {DEEPEST} levels; is this a file of automations?", path, line)


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
