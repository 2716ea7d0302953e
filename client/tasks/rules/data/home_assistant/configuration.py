"""Configuration of a home: automations, scripts, scenes; with `!include`, packages, blueprints."""

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from client.tasks.rules.data.home_assistant.document import MOST_NODES, Block, Unread, load_yaml, parse_yaml
from common.errors import DataError

SUFFIXES, MADE, PLATFORMS = (".yaml", ".yml"), ("template", "mqtt"), ("binary_sensor", "sensor", "cover")
AUTOMATIONS, MAIN, SECRETS = "automations", "configuration.yaml", "secrets.yaml"
MOST_INCLUDED, MOST_AUTOMATIONS = 10, 100_000
"""Files that include each other, and automations of a home."""

MOTION_LIGHT = """
triggers: {trigger: state, entity_id: !input motion_entity, from: "off", to: "on"}
actions:
  - {action: light.turn_on, target: !input light_target}
  - wait_for_trigger: {trigger: state, entity_id: !input motion_entity, from: "on", to: "off"}
  - {action: light.turn_off, target: !input light_target}
"""
"""Course of the blueprint that Home Assistant itself brings along."""


class TooLargeError(Exception):
    """A blueprint with its inputs, or the courses of an automation, are too large."""


class Files:
    """YAML files of a home's folder with what they include from it.

    Nothing outside of the folder, no symbolic link and no file of secrets is opened.

    Args:
        folder: Folder of the home.
        root: Folder to which the files are named in notes.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self._root = folder.resolve(), root.resolve()
        self._contents: dict[Path, Any] = {}
        self._open: list[Path] = []
        self._resolved: dict[int, Any] = {}

    def name_of(self, path: Path) -> str:
        """Return a file as notes name it."""
        return str(path.relative_to(self._root) if path.is_relative_to(self._root) else path.name)

    def read(self, path: Path) -> Any:
        """Return the content of a file; its `!include`s are read when `resolve` meets them."""
        if path not in self._contents:
            self._contents[path] = load_yaml(path, self.name_of(path))
        return self._contents[path]

    def read_whole(self, path: Path) -> Any:
        """Return the content of a file with all that it includes."""
        self._open.append(path)
        self._contents[path] = self.resolve(self.read(path))
        self._open.pop()
        return self._contents[path]

    def resolve(self, value: Any) -> Any:
        """Return a value with the files that it includes; an `Unread` stays where none may be read."""
        if isinstance(value, Unread):
            return self._included(value) if value.tag.startswith("!include") else value
        if id(value) in self._resolved:
            return value
        if isinstance(value, (list, Block)):
            self._resolved[id(value)] = value  # held, so that nothing else gets its id
        if isinstance(value, list):
            value[:] = [self.resolve(item) for item in value]
        elif isinstance(value, Block):
            value.update({key: self.resolve(item) for key, item in value.items()})
        return value

    def inside(self, path: Path) -> Path | None:
        """Return a path of the folder without symbolic links; None for any other."""
        found = Path(os.path.normpath(path))
        is_ours = found.is_relative_to(self.folder) and found.resolve() == found
        return found if is_ours and found.name != SECRETS and found not in self._open else None

    def _included(self, tag: Unread) -> Any:
        path = self.inside(tag.path.resolve().parent / tag.name) if tag.name and "\0" not in tag.name else None
        if path is None or len(self._open) >= MOST_INCLUDED:
            return tag
        if tag.tag == "!include":
            return self.read_whole(path) if path.is_file() else tag
        found = sorted(path.rglob("*.yaml")) if path.is_dir() else []
        files = [file for file in found if self.inside(file) and "/." not in f"/{file.relative_to(path)}"]
        contents = [(file.stem, self.read_whole(file)) for file in files]
        match tag.tag.removeprefix("!include_dir_"):
            case "list":
                return [content for _, content in contents]
            case "merge_list":
                return [item for _, content in contents if isinstance(content, list) for item in content]
            case "named":
                return Block({stem: content for stem, content in contents if content is not None})
            case "merge_named":
                merged = (content.items() for _, content in contents if isinstance(content, Block))
                return Block(item for items in merged for item in items)
        return tag


@dataclass(frozen=True)
class Configuration:
    """Automations of a home, and the scripts, scenes and classes that they name.

    Args:
        files: Files of its folder.
        automations: Name of the file, and one automation of it each.
        scripts: Name -> script.
        scenes: Id or name in an entity id -> scene.
        classes: Entity id -> device class that its owner set.
        groups: Entity id of a group -> its members, which may be groups.
    """

    files: Files
    automations: list[tuple[str, Any]] = field(default_factory=list)
    scripts: dict[str, Any] = field(default_factory=dict)
    scenes: dict[str, Block] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)

    def members(self, entity: str) -> list[str]:
        """Return the entities of a group and of its groups; an entity of another kind alone."""
        found = [entity]
        for name in found:  # grows on the way
            found += [member for member in self.groups.get(name, ()) if member not in found]
        return [name for name in found if name not in self.groups]

    def by_blueprint(self, block: Block, kind: str) -> Block | None:
        """Return an automation or script with its blueprint filled in; None without the file.

        Raises:
            TooLargeError: It has too many values.
        """
        use = block["use_blueprint"]
        name, inputs = (use.get("path"), use.get("input")) if isinstance(use, Block) else (None, None)
        found = self._blueprint(name, kind) if isinstance(name, str) and "\0" not in name else None
        if found is None:
            return None
        head = found.get("blueprint")
        values = _defaults(head.get("input")) if isinstance(head, Block) else {}
        values |= inputs if isinstance(inputs, Block) else {}
        body = found.with_values({key: value for key, value in found.items() if key != "blueprint"})
        body = _with_inputs(body, values, [MOST_NODES])
        return block.with_values({**body, **{key: value for key, value in block.items() if key != "use_blueprint"}})

    def _blueprint(self, name: str, kind: str) -> Block | None:
        path = self.files.inside(self.files.folder / "blueprints" / kind / name)
        found = self.files.read_whole(path) if path and path.is_file() else None
        if found is None and name == "homeassistant/motion_light.yaml":
            found = parse_yaml(MOTION_LIGHT, Path(), name)
        return found if isinstance(found, Block) else None


def _defaults(inputs: Any) -> dict[Any, Any]:
    """Return the defaults of a blueprint's inputs, also of those in sections."""
    found: dict[Any, Any] = {}
    for name, about in inputs.items() if isinstance(inputs, Block) else ():
        if isinstance(about, Block) and isinstance(about.get("input"), Block):
            found |= _defaults(about["input"])
        elif isinstance(about, Block) and "default" in about:
            found[name] = about["default"]
    return found


def _with_inputs(value: Any, inputs: Mapping[Any, Any], left: list[int]) -> Any:
    """Return a copy of a value with its inputs in place, which may have as many values as are left."""
    left[0] -= 1
    if left[0] < 0:
        raise TooLargeError
    if isinstance(value, Unread) and value.tag == "!input" and value.name in inputs:
        return _with_inputs(inputs[value.name], {}, left)
    if isinstance(value, list):
        return [_with_inputs(item, inputs, left) for item in value]
    if not isinstance(value, Block):
        return value
    return value.with_values({key: _with_inputs(item, inputs, left) for key, item in value.items()})


def automation_files(folder: Path) -> list[Path]:
    """Return the automation files of a home that no configuration names; symbolic links are left out."""
    files = [folder / f"{AUTOMATIONS}{suffix}" for suffix in SUFFIXES]
    more = [file for file in sorted((folder / AUTOMATIONS).rglob("*")) if file.suffix.lower() in SUFFIXES]
    return [file for file in (*files, *more) if file.is_file() and not file.is_symlink()]


def read_configuration(folder: Path, root: Path, file: Path | None = None) -> Configuration:
    """Return the configuration of a home.

    Args:
        folder: Folder of the home.
        root: Folder to which files are named in notes.
        file: Only file to read automations from; None for those of the configuration.

    Raises:
        DataError: A file is malformed, or there are too many automations.
    """
    files = Files(folder, root)
    found = Configuration(files)
    main = _main(files, MAIN)
    for section in (main, *_packages(main, files)):
        for key in section if file is None else [key for key in section if not str(key).startswith("automation")]:
            _add(found, str(key).split(" ")[0], section[key], section.file)
    loose = [file.resolve()] if file else [] if found.automations else automation_files(files.folder)
    for path in loose:
        content, name = files.read_whole(path), files.name_of(path)
        is_package = isinstance(content, Block) and any(str(key).startswith("automation") for key in content)
        for key, value in content.items() if is_package else [("automation", content)]:
            _add(found, str(key).split(" ")[0], value, name)
    for domain, entries in (("script", found.scripts), ("scene", found.scenes)):
        if not entries:
            _add(found, domain, files.resolve(_main(files, f"{domain}s.yaml", Any)), "")
    return found


def _main(files: Files, name: str, kind: Any = Block) -> Any:
    path = files.inside(files.folder / name)
    content = files.read(path) if path and path.is_file() else Block()
    return content if kind is Any or isinstance(content, kind) else Block()


def _packages(main: Block, files: Files) -> list[Block]:
    """Return the packages of a configuration."""
    core = main["homeassistant"] = files.resolve(main.get("homeassistant", Block()))
    packages = core.get("packages") if isinstance(core, Block) else None
    each = packages.values() if isinstance(packages, Block) else packages if isinstance(packages, list) else []
    return [package for package in each if isinstance(package, Block)]


def _add(found: Configuration, domain: str, value: Any, file: str) -> None:
    """Add what a section of a configuration holds for automations."""
    if domain not in ("automation", "script", "scene", "group", "homeassistant", *MADE, *PLATFORMS):
        return
    value = found.files.resolve(value)
    if domain == "automation":
        items = value if isinstance(value, list) else [] if value in (None, "", Block()) else [value]
        for item in items:
            found.automations.extend((file, one) for one in (item if isinstance(item, list) else [item]))
        if len(found.automations) > MOST_AUTOMATIONS:
            raise DataError(f"more than {MOST_AUTOMATIONS:,} automations; give fewer", found.files.folder)
    elif domain == "scene":
        for scene in value if isinstance(value, list) else [value]:
            if isinstance(scene, Block):
                found.scenes.update(
                    {slug(scene[key]): scene for key in ("id", "name") if isinstance(scene.get(key), str)}
                )
    elif domain in (*MADE, *PLATFORMS):
        made = _made_classes(Block({domain: value}) if domain in PLATFORMS else value)
        found.classes.update(classes for classes in made if classes[0] not in found.classes)
    elif domain == "group":
        for name, about in value.items() if isinstance(value, Block) else ():
            members = about.get("entities") if isinstance(about, Block) else about
            members = members if isinstance(members, list) else str(members).split(",")
            found.groups[f"group.{name}"] = [str(member).strip().casefold() for member in members]
    elif domain == "script":
        found.scripts.update(value if isinstance(value, Block) else {})
    elif isinstance(value, Block) and isinstance(value.get("customize"), Block):
        for entity, about in value["customize"].items():
            given = about.get("device_class") if isinstance(about, Block) else None
            found.classes.update({str(entity): given} if isinstance(given, str) else {})


def _made_classes(value: Any) -> Iterator[tuple[str, str]]:
    """Yield entity id and device class of the entities that a configuration makes."""
    for section in value if isinstance(value, list) else [value]:
        for domain, entities in section.items() if isinstance(section, Block) else ():
            for one in entities if isinstance(entities, list) else [entities]:
                named = one.get(f"{domain.rpartition('_')[2]}s") if isinstance(one, Block) else None  # by their keys
                found = {str(one.get("name", "")): one} if isinstance(one, Block) else {}
                for name, about in (named if isinstance(named, Block) else found).items():
                    given = about.get("device_class") if isinstance(about, Block) else None
                    if name and isinstance(given, str):
                        yield f"{domain}.{slug(name)}", given


def slug(name: str) -> str:
    """Return a name as Home Assistant writes it in an entity id."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return re.sub(r"[^a-z0-9]+", "_", "".join(c for c in plain if not unicodedata.combining(c))).strip("_")
