"""Every task declares the export of its models; the models themselves are exported in tests/system/test_exports.py."""

from dataclasses import replace

import pytest

from common.errors import ConfigError
from common.tasks.registry import TASKS
from deploy.tasks.registry import DEPLOY_TASKS
from tests.support.exports import ALL, untrained


def test_every_task_declares_its_export() -> None:
    assert all((ref := DEPLOY_TASKS[task].serving) and ref.load().request for task in TASKS)


def test_a_run_with_models_of_clusters_is_refused_by_name() -> None:
    run = untrained(ALL[0])
    clusters = {f"{k}/{name}": a for k in range(2) for name, a in run.model.items()}
    ref = DEPLOY_TASKS[run.config.task].serving
    assert ref is not None
    with pytest.raises(ConfigError, match="run 'r1' has 2 models, one for each cluster of clients; export a run of"):
        ref.load().export(replace(run, model=clusters), None)
