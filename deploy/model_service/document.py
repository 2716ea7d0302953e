"""Metadata of an exported model: all that a server needs beside the network, in the ONNX file itself."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from common.arrays import Arrays
from common.config.flatten import flatten, from_json
from common.config.run import RunConfig
from common.errors import DataError, FedloomError
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import Vocabulary

FORMAT = "1"
"""Version of the keys."""

LOCAL_KEYS = ("catalogue", "federation.")
"""Options of a run that concern its machines, not its model."""


@dataclass(frozen=True)
class Document:
    """Metadata of an exported model.

    Args:
        run: Name of the run.
        config: Its configuration.
        vocabulary: Its vocabulary.
        statics: Summed statistics that enter the inputs.
        model_sha256: SHA-256 of the run's parameters.
        privacy: Privacy statement in one sentence.
        card: Model card.
        data: Table of one unit's own data; empty for a model without.
    """

    run: str
    config: RunConfig
    vocabulary: Vocabulary
    statics: Arrays
    model_sha256: str
    privacy: str
    card: Mapping[str, Any]
    data: str = ""

    def to_properties(self) -> dict[str, str]:
        """Return the metadata as texts."""
        options = {key: value for key, value in flatten(self.config).items() if not key.startswith(LOCAL_KEYS)}
        return {
            "fedloom": FORMAT,
            "run": self.run,
            "task": self.config.task,
            "catalogue_sha256": self.vocabulary.sha256(),
            "model_sha256": self.model_sha256,
            "privacy": self.privacy,
            "config": json.dumps(options, sort_keys=True),
            "catalogue": self.vocabulary.to_json(),
            "statics": base64.b64encode(save(self.statics)).decode() if self.statics else "",
            "card": json.dumps(self.card, ensure_ascii=False),
            "data": self.data,
        }


def document_of(properties: Mapping[str, str]) -> Document:
    """Return the metadata of a file; inverse of `to_properties`.

    Raises:
        DataError: The texts are not such metadata.
    """
    if properties.get("fedloom") != FORMAT:
        raise DataError("the file is no model of fedloom; write one with fedloom export-model")
    try:
        config = from_json(properties["config"])
        statics = load(base64.b64decode(properties["statics"])) if properties["statics"] else {}
        card = json.loads(properties["card"])
        text = properties["catalogue"]
        about = (properties["model_sha256"], properties["privacy"], card, properties["data"])
        vocabulary = read_vocabulary(config.task, text)
    except (KeyError, TypeError, ValueError, SafetensorError, FedloomError) as error:
        raise DataError(f"the metadata cannot be read ({error}); export the model again") from None
    if vocabulary.sha256() != properties["catalogue_sha256"] or not isinstance(card, dict):
        raise DataError("the metadata are damaged; export the model again")
    return Document(properties["run"], config, vocabulary, statics, *about)
