"""Conditions and templates of an automation, decided for each course that it can take."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from client.tasks.rules.data.home_assistant import document as reasons
from client.tasks.rules.data.home_assistant.document import Block
from client.tasks.rules.data.home_assistant.registry import CHANGES, FALLS, RANGES, RISES, SUN, state_name, states_of
from client.tasks.rules.data.home_assistant.triggers import (
    COMPARED,
    EXPRESSION,
    FILTERS,
    HOME,
    HORIZONS,
    IS_STATE,
    LOST,
    QUOTED,
    STATES,
    Event,
    View,
    as_list,
    entities_of,
    is_enabled,
    number_of,
    other_states,
    plain_condition,
)

ItemT = TypeVar("ItemT")

OF_SUN = {DARK := "in the dark", DAY := "by day"}
SOMEBODY, NOBODY = "while somebody is home", "while nobody is home"
STATES_OF_HOME = {
    **{(SUN, "below_horizon"): DARK, (SUN, "above_horizon"): DAY, (HOME, "0"): NOBODY, ("group", "not_home"): NOBODY},
    **dict.fromkeys((("group", "home"), ("person", "home"), ("device_tracker", "home")), SOMEBODY),
}
"""Entity or domain with its state -> circumstance in words."""

SUN_AFTER = {("sunset", None): DARK, (None, "sunrise"): DARK, ("sunset", "sunrise"): DARK, ("sunrise", "sunset"): DAY}
"""`after` and `before` of a condition -> circumstance in words."""

EVENTS, TRIGGERED, ORDERS = {"trigger", "wait"}, "trigger.entity_id", (">", ">=", "<", "<=")
PRESENT = ("trigger.to_state", "trigger.from_state", "trigger.from_state.state")
"""Variables of events, the trigger's entity, comparisons of numbers, states that each change has."""

TIME = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?")


def circumstances(value: Any, view: View) -> frozenset[str]:
    """Return sun, presence and time of day on which conditions insist, in words; others are left out."""
    if isinstance(value, str) and (form := EXPRESSION.fullmatch(value.strip())):
        plain = IS_STATE.fullmatch(form[1].strip())
        value = Block(condition="state", entity_id=plain[1][1:-1], state=plain[2].strip("'\"")) if plain else value
    if isinstance(value, list):
        return frozenset[str]().union(*(circumstances(item, view) for item in value))
    if not isinstance(value, Block) or not is_enabled(value, view):
        return frozenset()
    way = next((key for key in ("and", "or", "not") if key in value or value.get("condition") == key), "")
    items = value.get(way, value.get("conditions"))
    if way == "or" and isinstance(items, list) and items:
        return frozenset.intersection(*(circumstances(item, view) for item in items))
    if way == "and":
        return circumstances(items, view)
    return frozenset([_circumstance(value, view)] if not way else []) - {""}


def _circumstance(block: Block, view: View) -> str:
    after, before = block.get("after"), block.get("before")
    match block.get("condition"):
        case "sun" if not any(key.endswith("_offset") for key in block):
            return SUN_AFTER.get((after, before), "")
        case "time" if "weekday" not in block and all(TIME.fullmatch(str(t)) for t in (after, before) if t):
            return " ".join(f"{word} {t}" for word, t in (("after", after), ("before", before)) if t)
        case "numeric_state" if entities_of(block, view) == [HOME] and number_of(block.get("above")) == 0:
            return SOMEBODY
        case "state" if len(entities := entities_of(block, view)) == 1 and "attribute" not in block:
            entity, state = entities[0], block.get("state")
            keys = [(name, state) for name in (entity, entity.partition(".")[0]) if isinstance(state, str)]
            return next((STATES_OF_HOME[key] for key in keys if key in STATES_OF_HOME), "")
    return ""


@dataclass(frozen=True)
class Course:
    """Course that an automation can take.

    Args:
        start: Event that starts what follows: its trigger, or the last one that it waited for.
        trigger: Event that started the automation.
        late: True if time went by since the event.
        waited: True if it waited for an event that came, False if that did not come in time; None if it did not wait.
    """

    start: Event
    trigger: Event
    late: bool = False
    waited: bool | None = None

    def learn(self, event: Event, now: Event) -> "Course":
        """Return the course with one of its events as it is certain now."""
        start, trigger = (now if one == event else one for one in (self.start, self.trigger))
        return replace(self, start=start, trigger=trigger)


Split = tuple[list[Course], list[Course]]
"""Courses on which a condition can hold, and on which it can fail."""


def unique(items: Iterable[ItemT]) -> list[ItemT]:
    """Return the items, each once."""
    return list(dict.fromkeys(items))


def sure(holds: bool, course: Course) -> Split:
    """Return the split of a condition that is decided."""
    return ([course], []) if holds else ([], [course])


def split(value: Any, courses: list[Course], view: View) -> Split:
    """Return the courses on which conditions can hold, and fail; a list is joined by `and`."""
    if isinstance(value, list):
        return _all(value, courses, view)
    if isinstance(value, Block):
        if not is_enabled(value, view):
            return courses, []
        for key, way in (("and", _all), ("or", _any), ("not", lambda *among: _any(*among)[::-1])):
            if key in value or value.get("condition") == key:
                inner = value.get(key, value.get("conditions", []))
                return way(inner if isinstance(inner, list) else [inner], courses, view)
    test = _test(value, view)
    each = [test(course) if test else ([course], [course]) for course in courses]
    if any(not holds and not fails for holds, fails in each):
        view.tally.add(reasons.TEMPLATE, value)
    if any(course in fails for holds, fails in each for course in holds):
        view.tally.add(reasons.CONDITION, value)
    return unique(c for holds, _ in each for c in holds), unique(c for _, fails in each for c in fails)


def _all(items: list[Any], courses: list[Course], view: View) -> Split:
    failed: list[Course] = []
    for item in items:
        courses, more = split(item, courses, view)
        failed += more
    return courses, unique(failed)


def _any(items: list[Any], courses: list[Course], view: View) -> Split:
    held: list[Course] = []
    for item in items:
        more, courses = split(item, courses, view)
        held += more
    return unique(held), courses


def _test(value: Any, view: View) -> Callable[[Course], Split] | None:
    """Return the test of a condition; None if it depends on more than the trigger."""
    value = plain_condition(value, view) if isinstance(value, Block) else value
    if isinstance(value, str):
        return _template(value, view)
    match value.get("condition") if isinstance(value, Block) else None:
        case "trigger":
            ids = as_list(value.get("id"))
            return lambda course: sure(course.trigger.id in ids, course)
        case "template":
            return _template(value.get("value_template"), view)
        case str(text) if "{" in text:
            return _template(text, view)
        case "state" if "attribute" not in value and entities_of(value, view):
            states, entities, is_loose = as_list(value.get("state")), entities_of(value, view), "for" in value
            tests = [
                partial(lambda name, one: _in_states(_seen(one, [name]), states, one, is_loose=is_loose), entity)
                for entity in entities
            ]
            return lambda course: _join(tests, course, is_or=value.get("match") == "any")
        case "numeric_state" if (
            not {"attribute", "value_template"} & value.keys() and len(entities_of(value, view)) == 1
        ):
            low, high = (number_of(value.get(key)) for key in ("above", "below"))
            if (low is None) == ("above" in value) or (high is None) == ("below" in value):
                return None
            return lambda course: _in_range(_seen(course, entities_of(value, view)), low, high, course)
        case "sun" if not any(key.endswith("_offset") for key in value):
            after, before = value.get("after"), value.get("before")
            return lambda course: _at_sun(_seen(course, [SUN]), after, before, course)
    return None


def _join(tests: Iterable[Callable[[Course], Split]], course: Course, *, is_or: bool) -> Split:
    """Return the split by several tests, joined by `or` or by `and`."""
    held, left = list[Course](), [course]
    for test in tests:
        splits = [test(one) for one in left]
        held += [c for one in splits for c in one[not is_or]]
        left = unique(c for one in splits for c in one[is_or])
    return (unique(held), left) if is_or else (left, unique(held))


def _seen(course: Course, entities: list[str]) -> Event | None:
    """Return the event that makes the present state of one of the entities certain; None without one."""
    return course.start if not course.late and course.start.part.entity in entities else None


def _in_states(event: Event | None, states: list[Any], course: Course, *, is_loose: bool = False) -> Split:
    """Return the split by the state of an event's device; a loose condition asks for more than that state."""
    if event is None:
        return [course], [course]
    if event.value is not None:
        return ([course], [course]) if is_loose and event.value in states else sure(event.value in states, course)
    kind = event.part.kind
    if is_loose or event.part.name != CHANGES or not all(isinstance(s, str) and state_name(kind, s) for s in states):
        return [course], [course]
    sides = states, other_states(kind, states)
    held, failed = ([course.learn(event, event.in_state(state)) for state in each] for each in sides)
    return held, failed if len(states_of(kind)) == 2 else [course]


def _at_sun(event: Event | None, after: Any, before: Any, course: Course) -> Split:
    """Return the split by the time of day, which only a rise or set of the sun decides."""
    if event is None or event.value is None:
        return [course], [course]
    rises = event.value == HORIZONS["sunrise"]
    if after:
        return sure((after == "sunrise" and (rises or not before)) or (after == "sunset" and not rises), course)
    return sure(before == "sunset" and rises, course)


def _in_range(event: Event | None, low: float | None, high: float | None, course: Course) -> Split:
    """Return the split by the number of an event's device."""
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    if event is None or least == -most == -math.inf:
        return [course], [course]
    if event.low >= least and event.high <= most:
        return sure(True, course)
    if event.low >= most or event.high <= least:
        return sure(False, course)
    if event.part.name != CHANGES:
        return [course], [course]
    name = RANGES if low is not None and high is not None else RISES if high is None else FALLS
    within = replace(event, part=replace(event.part, name=name), low=least, high=most)
    if name == RANGES:
        return [course.learn(event, within)], [course]
    outside = replace(event, part=replace(event.part, name=FALLS if name == RISES else RISES))
    outside = replace(outside, high=least) if name == RISES else replace(outside, low=most)
    return [course.learn(event, within)], [course.learn(event, outside)]


def _template(text: Any, view: View) -> Callable[[Course], Split] | None:
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    form = EXPRESSION.fullmatch(text.strip())
    return lambda course: _decide(form[1], course, view) if form else _undecided(text, course, view)


def _undecided(text: str, course: Course, view: View) -> Split:
    """Return the split by an unread template: both ways, or none if it asks for the event."""
    names = set(re.findall(r"[A-Za-z_]\w*", re.sub(QUOTED, "", text)))
    reads = names & EVENTS or any(EVENTS & set(re.findall(r"\w+", str(view.scope.get(name)))) for name in names)
    return ([], []) if reads else ([course], [course])


def _bare(text: str) -> str:
    """Return an expression without a leading `not` and without brackets around it."""
    text = text.strip()
    if re.match(r"not\s", text):
        return text[3:].strip()
    return text[1:-1].strip() if text.startswith("(") and text.endswith(")") and _closes(text) else text


def _closes(text: str) -> bool:
    """Return True if the first bracket of a text closes with its last character."""
    depth = 0
    for found in re.finditer(rf"{QUOTED}|[()]", text):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0 and found[0] == ")":
            return found.end() == len(text)
    return False


def _operands(text: str, word: str) -> list[str]:
    """Return the operands of `and`, `or` or `~` in an expression, outside of brackets and texts."""
    depth, start, found = 0, 0, []
    for token in re.finditer(rf"{QUOTED}|[()\[\]~]|\b{word}\b", text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token[0], 0)
        if token[0] == word and depth == 0:
            found.append(text[start : token.start()].strip())
            start = token.end()
    return [*found, text[start:].strip()]


def _decide(text: str, course: Course, view: View) -> Split:
    if re.search(r"\s(if|else)\s", re.sub(QUOTED, "", text)):
        return _undecided(text, course, view)
    for word in ("or", "and"):
        operands = _operands(text, word)
        if len(operands) > 1:
            return _join([partial(_decide, part, view=view) for part in operands], course, is_or=word == "or")
    plain = _bare(text)
    if plain != text:
        holds, fails = _decide(plain, course, view)
        return (fails, holds) if re.match(r"not\s", text) else (holds, fails)
    return _compare(text, course, view)


Atom = tuple[str, str, list[str]]
"""Side that is compared, operator, and texts or numbers to compare with."""


def _atom(text: str) -> Atom | None:
    """Return a comparison that is read; None for others."""
    if text.casefold() in ("true", "false", "wait.completed"):
        return text.casefold(), "", []
    if re.fullmatch(r"trigger\.(from|to)_state\.state\s*!=\s*trigger\.(?!\1)(from|to)_state\.state", text):
        return "true", "", []
    text = text.replace("(trigger.entity_id", f"('{TRIGGERED}'")
    if form := IS_STATE.fullmatch(text):
        wanted = literals(form[2])
        return None if wanted is None else (f"states({form[1]})", "in", wanted)
    form = COMPARED.fullmatch(FILTERS.sub("", text).strip())
    if form and re.fullmatch(QUOTED, form[1].strip()) and form[2] in ("==", "!="):
        form = COMPARED.fullmatch(f"{form[3]} {form[2]} {form[1]}")
    wanted = literals(form[3]) if form else None
    if form is None or wanted is None:
        return None
    left = form[1].strip()
    left = left[1:-1].strip() if left.startswith("(") and left.endswith(")") else left
    is_read = STATES.fullmatch(left) or re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", left)
    return (left, " ".join(form[2].split()), wanted) if is_read else None


def literals(text: str) -> list[str] | None:
    """Return the texts or numbers of a literal or a list of them; None for other expressions."""
    text = text.strip()
    form = re.fullmatch(r"[\[(](.*)[\])]", text, re.DOTALL)
    items = [item.strip() for item in (form[1] if form else text).split(",") if item.strip()]
    is_literal = (re.fullmatch(rf"{QUOTED}|none|None", item) or number_of(item) is not None for item in items)
    return [item.strip("'\"") for item in items] if all(is_literal) else None


def _compare(text: str, course: Course, view: View) -> Split:
    """Return the split by one comparison."""
    variable = view.scope.get(text)
    if isinstance(variable, str) and (form := EXPRESSION.fullmatch(variable.strip())):
        return _decide(form[1], course, _without(text, view))
    text = variable if isinstance(variable, str) else text
    left, how, wanted = _atom(text) or ("", "", [])
    swap = how in ("!=", "not in", "is not")
    if left in ("true", "false"):
        found = sure(left == "true", course)
    elif left == "wait.completed" or (left == "wait.trigger" and wanted[:1] in (["none"], ["None"])):
        is_done = course.waited if left == "wait.completed" or course.waited is None else not course.waited
        found = ([course], [course]) if is_done is None else sure(is_done, course)
    elif left in PRESENT and how not in ORDERS and LOST.issuperset(map(str.casefold, wanted)):
        found = sure(False, course)
    elif left == "trigger.from_state.state" and (after := other_states(course.trigger.part.kind, wanted)):
        found = _in_states(course.trigger, after, course)
    elif how in ORDERS and (left == "trigger.to_state.state" or STATES.fullmatch(left)):
        bound, above = number_of(wanted[0]) if wanted else None, how in (">", ">=")
        found = _in_range(_event_of(left, course), bound if above else None, None if above else bound, course)
    elif left == "trigger.to_state.state" or STATES.fullmatch(left):
        found = _in_states(_event_of(left, course), wanted, course)
    else:
        splits = [
            _undecided(text, one, view) if now is None or how in ORDERS else sure(now in wanted, one)
            for one, now in _value(left, course, view)
        ]
        found = [c for holds, _ in splits for c in holds], [c for _, fails in splits for c in fails]
    return found[::-1] if swap else found


def _event_of(left: str, course: Course) -> Event | None:
    """Return the event that makes a state certain: the trigger's, or a named device's; None without one."""
    form = STATES.fullmatch(left)
    name = (form[1] or form[2]).strip("'\"") if form else ""
    return _seen(course, [course.trigger.part.entity if name == TRIGGERED else name]) if form else course.trigger


def _without(name: str, view: View) -> View:
    """Return a view without a variable, within whose template the name is another."""
    return replace(view, scope={key: value for key, value in view.scope.items() if key != name})


def text_of(name: str, course: Course) -> str | None:
    """Return the text of a variable of the event; None if it is open."""
    trigger, waited = course.trigger, course.start.id if course.waited else None
    return {
        **{"trigger.id": trigger.id, "trigger.idx": trigger.index, "trigger.platform": trigger.platform},
        **dict.fromkeys(("trigger.entity_id", "trigger.to_state.entity_id"), trigger.part.entity),
        **{"trigger.event": trigger.about, "wait.trigger.id": waited},
    }.get(name)


LONGEST = 2000
"""Characters of a template that is read."""

CHAIN = re.compile(r"([^{]*)(\{%-?\s*if\b.*\{%-?\s*endif\s*-?%\})([^{]*)", re.DOTALL)
CHOICE = re.compile(
    r"\{%-?\s*if\s([^%]+)%\}((?:(?!\{%).)*)"
    r"\{%-?\s*el(?:se\s*-?%\}((?:(?!\{%).)*)\{%-?\s*endif\s*-?%\}|(if\s.*))",
    re.DOTALL,
)
"""Text around branches; the first branch, and the second or a chain of more."""

TEXTS = rf"\s*({QUOTED})\s*,\s*({QUOTED})\s*\)"
IIF = re.compile(rf"iif\((.+),{TEXTS}|((?:is_state)?\(.+\))\s*\|\s*iif\({TEXTS}")
PAIR = re.compile(rf"({QUOTED})\s*:\s*({QUOTED})\s*[,}}]")
LOOKUP = re.compile(r"(\{[^{}]*\}|[A-Za-z_]\w*)(?:\[(.+)\]|\.get\((.+)\))")
"""Choices between two texts, and texts looked up in a mapping."""


def render(text: Any, course: Course, view: View) -> list[tuple[Course, str | None]]:
    """Return the texts that a template can become, each with its course; None if one is open."""
    if not isinstance(text, str) or "{" not in text or len(text) > LONGEST:
        return [(course, text if isinstance(text, str) and len(text) <= LONGEST else None)]
    if (chain := CHAIN.fullmatch(text.strip())) and (form := CHOICE.fullmatch(chain[2])):
        branches = (form[2], f"{{% {form[4]}" if form[4] else form[3])
        first, second = (f"{chain[1]}{branch.strip()}{chain[3]}" for branch in branches)
        return _either(form[1].strip(" \n-"), first, second, course, view)
    found: list[tuple[Course, str | None]] = [(course, "")]
    end = 0
    for expression in EXPRESSION.finditer(text):
        before, end = text[end : expression.start()], expression.end()
        found = [
            (after, None if head is None or tail is None else head + before + tail)
            for one, head in found
            for after, tail in _value(expression[1], one, view)
        ]
    rest = text[end:]
    is_open = any(mark in text for mark in ("{%", "{#")) or "{{" in rest
    return [(one, None if head is None or is_open else head + rest) for one, head in found]


def _either(condition: str, first: str, second: str, course: Course, view: View) -> list[tuple[Course, str | None]]:
    held, failed = _decide(condition, course, view)
    each = [*((first, one) for one in held), *((second, one) for one in failed)]
    return [pair for text, one in each for pair in render(text, one, view)] or [(course, None)]


def _value(expression: str, course: Course, view: View) -> list[tuple[Course, str | None]]:
    text = expression.strip()
    if text.startswith("(") and _closes(text):
        return _value(text[1:-1], course, view)
    first, *rest = _operands(text, "if")
    condition, *others = _operands(" if ".join(rest), "else")
    if others:
        return _either(condition, f"{{{{ {first} }}}}", f"{{{{ {' else '.join(others)} }}}}", course, view)
    if len(operands := _operands(text, "~")) > 1:
        return render("".join(f"{{{{ {operand} }}}}" for operand in operands), course, view)
    if form := IIF.fullmatch(text):
        condition, first, second = (group for group in form.groups() if group)
        return _either(condition, first[1:-1], second[1:-1], course, view)
    if form := LOOKUP.fullmatch(text):
        named, keys = view.scope.get(form[1]), _value(form[2] or form[3], course, view)
        texts = named if isinstance(named, Block) else {key[1:-1]: item[1:-1] for key, item in PAIR.findall(form[1])}
        return [pair for one, key in keys for pair in render(texts.get(key), one, _without(form[1], view))]
    if re.fullmatch(QUOTED, text) or number_of(text) is not None:
        return [(course, text.strip("'\""))]
    if text in view.scope:
        return render(view.scope[text], course, _without(text, view))
    text = text.replace("(trigger.entity_id", f"('{TRIGGERED}'")
    event = _event_of(text, course) if text == "trigger.to_state.state" or STATES.fullmatch(text) else None
    if event is None:
        return _truth(text, course, view)
    if event.part.name == CHANGES and len(states := states_of(event.part.kind)) == 2:
        return [(course.learn(event, event.in_state(state)), state) for state in states]
    return [(course, event.value)]


def _truth(text: str, course: Course, view: View) -> list[tuple[Course, str | None]]:
    """Return the text of the event's variable, or `true` and `false` of a comparison; None if open."""
    held, failed = _decide(text, course, view) if IS_STATE.fullmatch(text) or COMPARED.fullmatch(text) else ([], [])
    if {*held} & {*failed} or not held + failed:
        return [(course, text_of(text, course))]
    return [*((one, "true") for one in held), *((one, "false") for one in failed)]
