"""Terms of sums: canonical text, digest, refusal of every bad field."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import WireError
from common.secure.terms import SumTerms, canonical
from tests.support.helpers import EXACT, TERMS, terms

NAMED = {"noise": "", "min_sum": "(min_sum|most)"}
"""Fields that contradict others, which are named in their place."""


@pytest.mark.parametrize("changed", [{}, EXACT, {"channel": "train/12", "rho": 0.1, "clip": math.pi}])
def test_parsing_inverts_the_text(changed: dict[str, Any]) -> None:
    written = terms(**changed)
    assert SumTerms.from_json(written.to_json()) == written
    assert SumTerms.from_json(written.to_json()).digest == written.digest


def test_the_text_is_canonical() -> None:
    assert canonical({"b": [1, 0.5], "a": True, "c": ("x",)}) == b'{"a":true,"b":[1,"0x1.0000000000000p-1"],"c":["x"]}'
    assert terms().to_json().startswith('{"bits":61,"bound":1024,"channel":"train","clip":"0x1.0000000000000p+0"')


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", ""),
        ("run", "x" * 201),
        ("run", "a\nb"),
        ("round", -1),
        ("round", 1 << 31),
        ("round", True),
        ("round", 1.0),
        ("channel", "assign"),
        ("channel", "train/"),
        ("channel", "train/01"),
        ("channel", "repeat/0"),
        ("channel", "repeat/1/"),
        ("size", 0),
        ("size", 4_000_001),
        ("bits", 64),
        ("bits", 16),
        ("bound", 0),
        ("bound", 1 << 31),
        ("clip", 0.0),
        ("clip", math.inf),
        ("clip", 1),
        ("sign", "negative"),
        ("rho", 0.0),
        ("rho", -1.0),
        ("rho", math.nan),
        ("noise", 0),
        ("noise", -1),
        ("noise", 1 << 24),
        ("most", 1),
        ("most", 100_001),
        ("min_sum", 1),
        ("min_sum", 65),
        ("layout", (("update", 5),)),
        ("layout", (("update", 3), ("update", 3))),
        ("layout", (("update", 7), ("gradient", -1))),
        ("layout", (("update", "6"),)),
        ("layout", ("update",)),
        ("layout", ()),
        ("roster", "0" * 63),
        ("roster", "G" * 64),
        ("keys", ()),
        ("keys", ("card", 1)),
        ("keys", ["card", "card"]),
        ("version", 5),
    ],
)
def test_a_bad_field_is_named(field: str, value: object) -> None:
    with pytest.raises(WireError, match=f"terms: .*{NAMED.get(field, field)}"):
        terms(**{field: value})


def test_bits_without_noise_are_64() -> None:
    with pytest.raises(WireError, match="bits"):
        terms(**{**EXACT, "bits": 61})


def _texts() -> list[str]:
    good = json.loads(terms().to_json())
    return [
        "",
        "[]",
        "NaN",
        "[" * 100_000,
        "x" * 1_000_001,
        json.dumps({**good, "version": 5}),
        json.dumps({**good, "more": 1}),
        json.dumps({key: value for key, value in good.items() if key != "run"}),
        json.dumps({**good, "clip": 1.0}),
        json.dumps({**good, "rho": "nan"}),
        json.dumps({**good, "rho": "0x1p-3"}),
        json.dumps({**good, "rho": "0x1p+99999"}),
        json.dumps({**good, "layout": {"update": 6}}),
        json.dumps({**good, "layout": [6]}),
        json.dumps(good),
        terms().to_json().replace('"round":1', '"round":1,"round":1'),
        terms().to_json().replace('"round":1', f'"round":{"1" * 5000}'),
        terms().to_json().replace('"round":1', '"round":NaN'),
    ]


@pytest.mark.parametrize("text", _texts(), ids=range(len(_texts())))
def test_a_malformed_text_is_a_wire_error(text: str) -> None:
    with pytest.raises(WireError, match="terms"):
        SumTerms.from_json(text)


@given(st.sampled_from(sorted(TERMS)), st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.lists(st.text())))
def test_any_value_of_a_field_is_valid_or_a_wire_error(field: str, value: object) -> None:
    content = {**json.loads(terms().to_json()), field: value}
    try:
        SumTerms.from_json(json.dumps(content, sort_keys=True, separators=(",", ":")))
    except WireError:
        return


def test_every_field_changes_the_digest() -> None:
    changes: list[dict[str, Any]] = [
        {"run": "b"},
        {"round": 2},
        {"channel": "evaluate"},
        {"size": 7, "layout": (("update", 7),)},
        {"bound": 2048},
        {"clip": 2.0},
        {"sign": "positive"},
        {"rho": 0.25},
        {"noise": 4097},
        {"most": 63},
        {"min_sum": 3},
        {"layout": (("update", 3), ("gradient", 3))},
        {"roster": "1" * 64},
        EXACT,
    ]
    assert len({terms().digest, *(terms(**change).digest for change in changes)}) == len(changes) + 1
