"""Every registered method and planner is a case of the study of lies, and every task."""

from common.config.parse import parse
from common.methods.planners import method_names
from common.methods.registry import ALONE
from common.tasks.registry import TASKS
from common.wire.messages import TRAIN
from server.exchange.grid import GRACE_SECONDS
from studies.lies.cases import HONEST, LIES, OF_UPDATE, SETTINGS, USUAL_GRACE_SECONDS, all_cases
from studies.lies.liars import lies


def test_the_cases_are_all_methods_lies_and_tasks_once() -> None:
    cases = [*all_cases()]
    assert len({case.key for case in cases}) == len(cases)
    assert {case.task for case in cases} == {*SETTINGS} == {*TASKS}
    for method in method_names():
        assert parse(next(case.settings for case in cases if case.method == method)).method == method
        missing = {*LIES, HONEST} - {case.lie for case in cases if case.method == method}
        assert missing == ({*OF_UPDATE} if method == ALONE else set())


def test_every_described_lie_is_tried_and_those_about_the_update_in_training() -> None:
    found = lies("loss", 4)
    assert [*found] == [*LIES]
    assert {found[name][0] for name in OF_UPDATE} == {TRAIN}


def test_the_usual_grace_is_that_of_the_server() -> None:
    assert USUAL_GRACE_SECONDS == GRACE_SECONDS
