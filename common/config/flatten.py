"""A run's configuration as dotted keys and scalars: in files, on the wire, in Flower's run config."""

import json

from common.config.run import RunConfig, Scalar, parse
from common.options import leaves


def flatten(config: RunConfig) -> dict[str, Scalar]:
    """The resolved configuration as dotted keys: every key but the sections of methods and tasks not chosen."""
    sections: dict[str, set[str]] = {"algorithm": {config.method, config.chosen.name}, "tasks": {config.task}}
    tree = config.model_dump(by_alias=True)
    for section, chosen in sections.items():
        tree[section] = {name: options for name, options in tree[section].items() if name in chosen}
        for options in tree[section].values():
            options.pop("name", None)
    return dict(leaves(tree, ""))


def to_json(config: RunConfig) -> str:
    """The resolved configuration as it travels to clients."""
    return json.dumps(flatten(config), sort_keys=True)


def from_json(text: str) -> RunConfig:
    """Inverse of `to_json`."""
    return parse(json.loads(text))
