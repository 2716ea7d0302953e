"""The base of all options: kebab-case keys, frozen, unknown keys refused."""

from functools import cached_property

import pytest
from pydantic import ValidationError

from common.options import Options, kebab


class Speed(Options):
    top_speed: float = 1.0

    @cached_property
    def half(self) -> float:
        return self.top_speed / 2


def test_keys_are_kebab_case_outside_and_snake_case_inside() -> None:
    assert kebab("a_b_c") == "a-b-c"
    assert Speed.model_validate({"top-speed": 2}).top_speed == 2.0
    assert Speed(top_speed=3).model_dump(by_alias=True) == {"top-speed": 3.0}


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValidationError, match="top-sped"):
        Speed.model_validate({"top-sped": 2})


def test_options_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Speed().top_speed = 2  # type: ignore[misc]


def test_a_copy_computes_again_what_followed_from_the_former_values() -> None:
    slow = Speed()
    assert slow.half == 0.5
    fast = slow.model_copy(update={"top_speed": 4.0})
    assert fast.half == 2.0
    assert slow == Speed()
    assert hash(slow) == hash(Speed())
