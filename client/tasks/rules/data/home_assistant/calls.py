"""Services that an automation calls on devices."""

from collections.abc import Iterator
from typing import Any

from client.tasks.rules.data.home_assistant import tally as reasons
from client.tasks.rules.data.home_assistant.document import Block, Unread
from client.tasks.rules.data.home_assistant.events import Part, as_list, enabled_blocks, entities_in, first_of
from client.tasks.rules.data.home_assistant.registry import HomeRegistry
from client.tasks.rules.data.home_assistant.tally import Tally
from client.tasks.rules.data.home_assistant.types import action_name, called_service, device_type, domain_of

CONDITIONS = ("conditions", "condition", "if", "while", "until")
SEQUENCES = ("sequence", "then", "else", "default", "parallel")
"""Keys of blocks that hold conditions, and actions."""


def calls(value: Any, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    """Yield the calls of a list of actions, also within choices, branches and loops."""
    for block in enabled_blocks(value, tally):
        yield from _call(block, registry, tally)


def count_conditions(block: Block, tally: Tally) -> None:
    """Count the conditions of a block, which are ignored."""
    for key in CONDITIONS:
        value = block.get(key, [])
        for condition in value if isinstance(value, list) else [value]:
            tally.add(reasons.CONDITION, condition)


def _call(block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    service = first_of(block, "action", "service")
    if isinstance(service, Unread):
        tally.add(reasons.TAG, block)
    elif isinstance(service, str):
        yield from _service(service, block, registry, tally)
    elif "scene" in block:
        tally.add(reasons.SCENE, block)
    elif "device_id" in block and "type" in block:
        yield from _device(block, registry, tally)
    count_conditions(block, tally)
    for branch in as_list(block.get("choose")):
        if isinstance(branch, Block):
            count_conditions(branch, tally)
            yield from calls(branch.get("sequence", []), registry, tally)
    nested = block.get("repeat")
    for holder in (block, nested) if isinstance(nested, Block) else (block,):
        if holder is nested:
            count_conditions(nested, tally)
        for key in SEQUENCES:
            if key in holder:
                yield from calls(holder[key], registry, tally)


def _service(service: str, block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    domain, _, name = service.strip().partition(".")
    if "{" in service:
        tally.add(reasons.TEMPLATE, block)
    elif domain in ("notify", "persistent_notification", "tts"):
        tally.add(reasons.NOTIFICATION, block)
    elif domain in ("scene", "script"):
        tally.add(reasons.SCENE, block)
    else:
        for entity in _targets(domain, block, registry, tally):
            yield from _part(entity, name, block, registry, tally)


def _targets(domain: str, block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[str]:
    """Yield the entities that a call names itself, by their device or by their area."""
    for holder in (block.get("target"), block.get("data"), block):
        if not isinstance(holder, Block):
            continue
        yield from entities_in(holder.get("entity_id"), registry, tally, block)
        for key, find in (("device_id", registry.of_device), ("area_id", registry.of_area)):
            for name in as_list(holder.get(key)):
                found = find(name, domain) if isinstance(name, str) else []
                yield from found
                if not found:
                    tally.add(reasons.NO_REGISTRY, block)


def _device(block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    """Yield the call of an action that the user interface made."""
    service = called_service(str(block.get("domain")), str(block["type"]))
    for entity in entities_in(block.get("entity_id"), registry, tally, block):
        yield from _part(entity, service, block, registry, tally)


def _part(entity: str, service: str, block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    kind = device_type(entity, registry.find(entity).device_class)
    action = action_name(entity, service)
    if domain_of(entity) in ("scene", "script"):
        tally.add(reasons.SCENE, block)
    elif kind is None or action is None:
        tally.add(reasons.DEVICE if kind is None else reasons.SERVICE, block)
    else:
        yield Part(entity, kind, action)
