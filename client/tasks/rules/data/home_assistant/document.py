"""YAML of Home Assistant as plain data, with the unread items counted by reason."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from client.data.tables.files import reading
from common.errors import DataError
from common.text import count, printable

MOST_BYTES, MOST_NODES, DEEPEST = 8 * 2**20, 200_000, 50
"""Limits of a file: bytes, nodes with aliases expanded, and levels."""


class Block(dict[Any, Any]):
    """Mapping with its file, as it is named in notes, and the line of its first key, from 1."""

    file: str = ""
    line: int = 0

    def with_values(self, values: Mapping[Any, Any]) -> "Block":
        """Return a block at the same line with other values."""
        made = Block(values)
        made.file, made.line = self.file, self.line
        return made


@dataclass(frozen=True)
class Unread:
    """Value of a tag that is not read here, such as `!secret`, `!input` or `!include`.

    Args:
        tag: Tag with its `!`.
        name: Text behind the tags of inputs and files; empty for all others, so that no secret's name is held.
        path: File that it stands in.
    """

    tag: str
    name: str = ""
    path: Path = Path()


class PlainLoader(yaml.CSafeLoader):
    """Loader of text, lists and mappings; `on` and `07:30` stay text, and unknown tags are `Unread`."""

    path, name = Path(), ""


PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag == "tag:yaml.org,2002:merge"]
    for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _block(loader: PlainLoader, node: yaml.MappingNode) -> Iterator[Block]:
    block = Block()
    block.file, block.line = loader.name, node.start_mark.line + 1
    yield block
    block.update(loader.construct_mapping(node))


PlainLoader.add_constructor("tag:yaml.org,2002:map", _block)


def _unread(loader: PlainLoader, node: yaml.Node) -> Unread:
    tag, named = str(node.tag), isinstance(node, yaml.ScalarNode)
    return Unread(tag, node.value if named and tag.startswith(("!input", "!include")) else "", loader.path)


PlainLoader.add_constructor(None, _unread)


def parse_yaml(text: str, path: Path, name: str) -> Any:
    """Return the content of a YAML text, whose blocks are of the file with this name."""
    loader = PlainLoader(text)
    loader.path, loader.name = path, name
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def load_yaml(path: Path, name: str = "") -> Any:
    """Return the content of a YAML file, which notes call by this name.

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
        return parse_yaml(text, path, name or path.name)
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


BLUEPRINT = "blueprint without its file"
INPUT = "blueprint input without a value"
TEMPLATE = "template"
TAG = "value of a tag such as !secret"
INCLUDE = "!include of a file that is not in the folder"
NOTIFICATION = "notification"
SCENE = "scene or script that is not in the configuration"
LOOP = "endless or too deep call of scripts"
NO_REGISTRY = "device or area without entities in the registry"
NO_STORAGE = "device or area that only .storage/core.entity_registry lists"
TRIGGER = "trigger of another kind"
STATE = "state outside the public table"
SERVICE = "service outside the public table"
DEVICE = "device type outside the public table"
DISABLED = "disabled part"
OFF = "automation that is switched off"
MALFORMED = "malformed part"
PRODUCT = "automation with too many combinations"
ONLY_NOTIFIES = "automation that only notifies"
NO_EVENT = "automation without a device that triggers it"
NO_CALL = "automation without a device that it acts on"
TWICE = "automation with the id of an earlier one"
REVERSAL = "step that a delay takes back"
CONDITION = "condition on more than the trigger"

PLURALS = {
    BLUEPRINT: "blueprints without their file",
    INPUT: "blueprint inputs without a value",
    TAG: "values of tags such as !secret",
    INCLUDE: "!includes of files that are not in the folder",
    SCENE: "scenes or scripts that are not in the configuration",
    LOOP: "endless or too deep calls of scripts",
    NO_REGISTRY: "devices or areas without entities in the registry",
    NO_STORAGE: "devices or areas that only .storage/core.entity_registry lists",
    TRIGGER: "triggers of other kinds",
    STATE: "states outside the public table",
    SERVICE: "services outside the public table",
    DEVICE: "device types outside the public table",
    OFF: "automations that are switched off",
    PRODUCT: "automations with too many combinations",
    ONLY_NOTIFIES: "automations that only notify",
    NO_EVENT: "automations without a device that triggers them",
    NO_CALL: "automations without a device that they act on",
    TWICE: "automations with the ids of earlier ones",
    REVERSAL: "steps that a delay takes back",
    CONDITION: "conditions on more than the trigger",
}

MINOR = (CONDITION, REVERSAL, DISABLED, NOTIFICATION)
"""Reasons that explain an automation without rules only if there is no other."""

MOST_NAMED, LONGEST = 3, 40
"""Automations named of one reason, and characters of their names."""


@dataclass
class Tally:
    """Automations that are read, and reasons for what is not.

    Args:
        automations: Number of automations.
        unread: Reason -> the automations without a rule for which it is the first.
        left_out: Reason -> number of parts of the other automations, and the first.
    """

    automations: int = 0
    unread: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, tuple[int, str]] = field(default_factory=dict)
    _found: dict[tuple[str, int], str] = field(default_factory=dict)
    _where: str = ""

    def begin(self, file: str, part: Any) -> None:
        """Count an automation of a file, and begin with its parts."""
        self.automations += 1
        self._found = {}
        self._where = f"{file}, line 1"
        if isinstance(part, Block):
            alias = part.get("alias")
            self._where = f"{part.file}, line {part.line}"
            self._where += f", '{printable(alias, LONGEST)}'" if isinstance(alias, str) else ""

    def add(self, reason: str, part: Any = None) -> None:
        """Note a part that is not read, at its own line if it is a block; once however often it is met."""
        where = f"{part.file}, line {part.line}" if isinstance(part, Block) else self._where
        self._found.setdefault((reason, id(part)), where)

    def end(self, *, read: bool, otherwise: str) -> None:
        """Count the parts of the automation that was read, or it with the reason why it was not.

        Args:
            read: True if it has a rule.
            otherwise: Reason if no part has one.
        """
        reasons = [reason for reason, _ in self._found]
        if not read:
            first = [reason for reason in reasons if reason not in MINOR]
            first += [ONLY_NOTIFIES] if NOTIFICATION in reasons else [*reasons, otherwise]
            self.unread.setdefault(first[0], []).append(self._where)
            return
        for (reason, _), where in self._found.items():
            number, earliest = self.left_out.get(reason, (0, where))
            self.left_out[reason] = number + 1, earliest

    def notes(self) -> Iterator[str]:
        """Yield what was read, what was not and why, and what was left out of the former."""
        lost = sum(map(len, self.unread.values()))
        each = "; ".join(
            f"{_counted(reason, len(named))} ({'; '.join(named[:MOST_NAMED])}{'; …' * (len(named) > MOST_NAMED)})"
            for reason, named in self.unread.items()
        )
        total = count(self.automations, "automation")
        yield f"read {self.automations - lost:,} of {total}" + (f"; {lost:,} not: {each}" if lost else "")
        if self.left_out:
            rest = (f"{_counted(reason, number)} (first: {at})" for reason, (number, at) in self.left_out.items())
            yield f"left out of those read: {'; '.join(rest)}"


def _counted(reason: str, number: int) -> str:
    return f"{number:,} {reason if number == 1 else PLURALS.get(reason, f'{reason}s')}"
