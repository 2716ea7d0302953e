"""Steps that the training commands share: vocabulary, folder and result of a run."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from common.config.run import RunConfig
from deploy.cli.options import DataRequest
from deploy.cli.output import find_error_class, note, print_object
from deploy.data.sources import read_catalogue
from deploy.federation.request import run_vocabulary
from deploy.federation.runs import FILE as ORIGIN_FILE
from deploy.federation.runs import runs_folder
from server.record.folder import LOCK_FILE, RunDirectory
from server.record.result import Result, result_to_json


def with_catalogue(config: RunConfig, catalogue: Path | None) -> RunConfig:
    """Return the run of a server without data, with the vocabulary in the file.

    Raises:
        ConfigError: The run is resumed and has another vocabulary.
        DataError: The file is missing or holds no vocabulary.
    """
    given = read_catalogue(config.task, catalogue)
    if config.resume:
        run_vocabulary(RunDirectory(runs_folder(), config.run_id), config.task, given)
    return config.model_copy(update={"catalogue": str(catalogue.resolve())}) if catalogue else config


@contextmanager
def removed_unless_started(run_id: str) -> Iterator[None]:
    """Remove the folder that a command made for its run if the block fails before the run starts."""
    try:
        yield
    except BaseException:
        folder = runs_folder() / run_id
        if not (folder / "config.toml").exists():
            for name in (ORIGIN_FILE, LOCK_FILE):
                (folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # a folder with other files is not ours
                folder.rmdir()
        raise


def finish(
    result: Result, json_wanted: bool, source: DataRequest | None = None, *, examples: bool | None = None
) -> None:
    """Store examples of a run's answers, and print its result as JSON if wanted.

    Args:
        result: Result of the run.
        json_wanted: True for JSON.
        source: Data of this command; None if the data are at joining clients.
        examples: True for examples of own data too, False for those of generated data alone, None for none.

    Raises:
        FedloomError: The run failed; the class is that of the error that ended it.
    """
    if examples is not None:
        from deploy.pages.answers import add_examples

        add_examples(result, RunDirectory(runs_folder(), result.run), source, note, own=examples)
    if json_wanted:
        print_object(json.loads(result_to_json(result)))
    if result.status != "completed":
        raise find_error_class(result.error)(f"the run failed: {result.reason}")
