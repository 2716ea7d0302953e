"""Public vocabulary of a run, from its file or the embedded data."""

from pathlib import Path

from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.tasks.registry import demo_vocabulary, read_vocabulary
from common.tasks.vocabulary import Vocabulary


def read_catalogue(config: RunConfig) -> Vocabulary:
    """Read the task's public vocabulary.

    Raises:
        ConfigError: The file cannot be read.
        DataError: The file is not a vocabulary.
    """
    if config.catalogue == "demo":
        return demo_vocabulary(config.task)
    try:
        return read_vocabulary(config.task, Path(config.catalogue).read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"cannot read vocabulary file {config.catalogue} ({error.strerror}); check --catalogue"
        ) from None
    except DataError as error:
        raise DataError(str(error), config.catalogue) from None
