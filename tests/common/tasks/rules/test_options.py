"""Vocabulary and options of the rules task."""

import pytest
from pydantic import ValidationError

from common.errors import DataError
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.vocabulary import RuleCatalogue, relation_name, relation_parts

CATALOGUE = RuleCatalogue(entities=("Light", "Lüster"), relations=("opens → turn on", "opens → turn off"))


def test_a_relations_name_can_be_read_back() -> None:
    assert relation_name("opens", "turn on") == "opens → turn on"
    assert relation_parts("opens → turn on") == ("opens", "turn on")


@pytest.mark.parametrize("name", ["", "opens", "opens → ", " → turn on", "a → b → c"])
def test_other_texts_are_no_relations(name: str) -> None:
    with pytest.raises(ValueError, match="→"):
        relation_parts(name)


@pytest.mark.parametrize("parts", [("", "turn on"), ("opens", ""), ("opens → closes", "turn on")])
def test_an_ambiguous_relation_cannot_be_named(parts: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="cannot be part"):
        relation_name(*parts)


def test_the_fingerprint_depends_on_the_order_of_names() -> None:
    swapped = CATALOGUE.model_copy(update={"relations": CATALOGUE.relations[::-1]})
    assert swapped.sha256() != CATALOGUE.sha256()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "not a vocabulary"),
        ('{"entities": ["a"]}', "relations"),
        ('{"entities": ["a", "a"], "relations": []}', "device type is listed twice"),
        ('{"entities": [""], "relations": []}', "device type has no name"),
        ('{"entities": ["a"], "relations": ["opens"]}', "not of the form"),
    ],
)
def test_other_json_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        RuleCatalogue.from_json(text)


def test_options_are_kebab_case_outside_and_refuse_unknown_keys() -> None:
    assert RulesOptions.model_validate({"test-share": 0.5}).test_share == 0.5
    with pytest.raises(ValidationError):
        RulesOptions.model_validate({"negative": 3})
    with pytest.raises(ValidationError):
        RulesOptions(test_share=1.0)
