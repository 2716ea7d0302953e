"""The command that makes a run again."""

from common.config import parse
from common.flat import flatten
from deploy.report.again import command
from deploy.report.history import History


def history(**config: object) -> History:
    return History("r1", config, (), "unfinished", "", None, None)


def test_only_what_differs_from_the_defaults_is_set() -> None:
    resolved = flatten(parse({"method": "fedrule", "rounds": 7, "federation.deadline": 33.5, "run-id": "r1"}))
    assert command(history(**resolved)) == (
        "fedloom up --method fedrule --task rules --rounds 7 --seed 0 --set federation.deadline=33.5"
    )


def test_words_are_quoted_for_the_shell() -> None:
    assert command(history(method="of yesterday", note="a b")) == "fedloom up --method 'of yesterday' --set 'note=a b'"
