"""Rules of an automation: each event with each call that it can start, along its actions."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from client.tasks.rules.data.home_assistant import document as reasons
from client.tasks.rules.data.home_assistant.conditions import (
    OF_SUN,
    Course,
    Split,
    circumstances,
    literals,
    render,
    split,
    unique,
)
from client.tasks.rules.data.home_assistant.configuration import TooLargeError, slug
from client.tasks.rules.data.home_assistant.document import Block
from client.tasks.rules.data.home_assistant.registry import (
    SUN,
    action_name,
    called_service,
    domain_of,
    is_undone,
    set_service,
    table,
)
from client.tasks.rules.data.home_assistant.triggers import (
    EXPRESSION,
    Event,
    Part,
    View,
    as_list,
    domain_fits,
    entity_of,
    events,
    first_of,
    is_enabled,
    part_of,
    template_events,
    unread_reason,
)

MOST_RULES, MOST_STEPS, DEEPEST = 10_000, 50_000, 10
"""Rules of an automation, steps of all its courses, and scripts that call each other."""

MESSAGES = ("notify", "persistent_notification", "tts", "mobile_app")
SERVICES = ("action", "service", "service_template")
DATA = ("data", "data_template")
TARGETS = ("device_id", "area_id", "floor_id", "label_id")
CONDITIONS = {"condition", "and", "or", "not"}
FALSE = ("false", "no", "off")


def rules_of(item: Any, view: View) -> dict[tuple[Part, Part], frozenset[str]]:
    """Return the rules of an automation, each with its circumstances; what is not read is counted.

    Raises:
        TooLargeError: It has too many courses or rules.
    """
    block = _automation(item, view)
    if block is None:
        return {}
    scope = {**part_of(block, "trigger_variables"), **part_of(block, "variables")}
    starts = events(first_of(block, "triggers", "trigger") or [], replace(view, scope=scope))
    if not starts:
        view.tally.add(reasons.NO_EVENT, block)
        return {}
    conditions, walk, groups = first_of(block, "conditions", "condition") or [], Walk(), [e.variables for e in starts]
    for variables in (found for k, found in enumerate(groups) if found not in groups[:k]):
        view = replace(view, scope={**scope, **variables})
        courses, _ = split(conditions, [Course(e, e) for e in starts if e.variables == variables], view)
        walk.run(first_of(block, "actions", "action") or [], courses, _under(conditions, view))
    return walk.rules


def _under(conditions: Any, view: View) -> View:
    """Return the view behind conditions that hold."""
    return replace(view, when=view.when | circumstances(conditions, view))


def _automation(item: Any, view: View) -> Block | None:
    """Return an automation that is on, with its blueprint filled in; None for others, which are counted."""
    if not isinstance(item, Block):
        view.tally.add(unread_reason(item))
        return None
    entries = (e for e in view.registry.entities.values() if e.unique and e.unique == item.get("id"))
    is_disabled = any(domain_of(e.name) == "automation" and not e.enabled for e in entries)
    if is_disabled or any(str(item.get(key, "true")).casefold() in FALSE for key in ("initial_state", "enabled")):
        view.tally.add(reasons.OFF)
        return None
    made = view.home.by_blueprint(item, "automation") if "use_blueprint" in item else item
    if made is None:
        view.tally.add(reasons.BLUEPRINT, item)
    return made


class Walk:
    """Walk through the actions of an automation."""

    def __init__(self) -> None:
        self.rules: dict[tuple[Part, Part], frozenset[str]] = {}
        self._done: dict[tuple[Event, str], list[str]] = {}
        self._left = MOST_STEPS
        self._scripts: list[str] = []
        self._stops: list[bool] = []
        """Each `stop` that was met: True if it is an error, which ends the callers of a script too."""

    def run(self, value: Any, courses: list[Course], view: View) -> Split:
        """Return the courses that come to the end of a sequence, and those that a condition ended."""
        ended: list[Course] = []
        for step in value if isinstance(value, list) else [value]:
            if not courses:
                break
            self._spend(len(courses))
            if isinstance(step, Block) and isinstance(step.get("variables"), Block):
                view = replace(view, scope={**view.scope, **step["variables"]})
            courses, failed = self._step(step, courses, view)
            if isinstance(step, str) or (isinstance(step, Block) and CONDITIONS & step.keys()):
                view = _under(step, view)
            ended += failed
        return unique(courses), unique(ended)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0 or len(self.rules) > MOST_RULES:
            raise TooLargeError

    def _inner(self, value: Any, courses: list[Course], view: View) -> list[Course]:
        """Return the courses that leave an inner sequence, which a failed condition leaves too."""
        through, ended = self.run(value, courses, view)
        return unique([*through, *ended])

    def _step(self, step: Any, courses: list[Course], view: View) -> Split:
        if isinstance(step, str):  # a template as condition
            return split(step, courses, view)
        if not isinstance(step, Block):
            view.tally.add(unread_reason(step))
            return courses, []
        if not is_enabled(step, view):
            return courses, []
        if CONDITIONS & step.keys():
            return split(step, courses, view)
        inner = next((key for key in self._INNER if key in step), None)
        if inner:
            return self._INNER[inner](self, step, courses, view), []
        if "device_id" in step and "type" in step:
            self._call_device(step, courses, view)
        elif "scene" in step or any(key in step for key in SERVICES):
            return unique(c for course in courses for c in self._call(step, course, view)), []
        return courses, []

    def _choose(self, step: Block, courses: list[Course], view: View) -> list[Course]:
        after: list[Course] = []
        for branch in step["choose"] if isinstance(step["choose"], list) else [step["choose"]]:
            if isinstance(branch, Block) and is_enabled(branch, view):
                conditions = first_of(branch, "conditions", "condition") or []
                held, courses = split(conditions, courses, view)
                after += self._inner(branch.get("sequence", []), held, _under(conditions, view))
        return unique([*after, *self._inner(step.get("default", []), courses, view)])

    def _if(self, step: Block, courses: list[Course], view: View) -> list[Course]:
        held, failed = split(step["if"], courses, view)
        after = self._inner(step.get("then", []), held, _under(step["if"], view))
        return unique([*after, *self._inner(step.get("else", []), failed, view)])

    def _repeat(self, step: Block, courses: list[Course], view: View) -> list[Course]:
        loop = step["repeat"]
        if not isinstance(loop, Block) or loop.get("count") == "0":
            return courses
        items = variable_list(loop.get("for_each"), view)
        views = [_with_item(view, item) for item in items] if isinstance(items, list) else [view]
        new, after = split(loop.get("while", []), courses, view)
        seen: set[Course] = set()
        while new:  # an event of one time round may start the next
            seen |= set(new)
            ends = unique(course for each in views for course in self._inner(loop.get("sequence", []), new, each))
            more, over = split(loop.get("while", []), ends, view)
            over, more = split(loop["until"], more, view) if "until" in loop else (over, more)
            after = [*after, *(over if {"while", "until"} & loop.keys() else ends)]
            new = [course for course in more if course not in seen]
        return unique(after)

    def _parallel(self, step: Block, courses: list[Course], view: View) -> list[Course]:
        branches = step["parallel"] if isinstance(step["parallel"], list) else [step["parallel"]]
        ends = [self._inner(branch, courses, view) for branch in branches]
        through = [course for course in courses if all(course in end for end in ends)]
        return unique([*through, *(course for end in ends for course in end if course not in courses)])

    def _wait(self, step: Block, courses: list[Course], view: View) -> list[Course]:
        key = "wait_for_trigger" if "wait_for_trigger" in step else "wait_template"
        found = events(step[key], view) if key == "wait_for_trigger" else template_events(step[key], view, step)
        is_timed = "timeout" in step and str(step.get("continue_on_timeout")).casefold() not in FALSE
        late = [replace(course, late=True, waited=False) for course in courses] if is_timed else []
        triggers = unique(course.trigger for course in courses)
        self._spend(len(triggers) * len(found))
        return unique([*(Course(event, trigger, waited=True) for trigger in triggers for event in found), *late])

    def _stop(self, step: Block) -> list[Course]:
        self._stops.append(str(step.get("error", FALSE[0])).casefold() not in FALSE)
        return []

    _INNER: ClassVar[dict[str, Callable[["Walk", Block, list[Course], View], list[Course]]]] = {
        "choose": _choose,
        "if": _if,
        "repeat": _repeat,
        "parallel": _parallel,
        "wait_for_trigger": _wait,
        "wait_template": _wait,
        "delay": lambda _, step, courses, view: [replace(course, late=True) for course in courses],
        "stop": lambda walk, step, courses, view: walk._stop(step),
        "sequence": lambda walk, step, courses, view: walk._inner(step["sequence"], courses, view),
    }

    def _call(self, step: Block, course: Course, view: View) -> list[Course]:
        """Return the courses behind a call of a service."""
        service, after = "scene.turn_on" if "scene" in step else first_of(step, *SERVICES), list[Course]()
        for one, name in render(service, course, view):
            domain, _, verb = (name or "").strip().partition(".")
            if name is None:
                view.tally.add(unread_reason(service), step)
            elif domain in MESSAGES:
                view.tally.add(reasons.NOTIFICATION, step)
            elif domain == "script" and verb not in ("turn_on", "turn_off", "toggle", "reload"):
                after += self._script(verb, first_of(step, *DATA), step, one, view)
                continue
            elif name == "scene.apply":
                self._set_states(part_of(step, *DATA).get("entities"), step, one, view)
            else:
                for again, entity in _targets(domain, verb, step, one, view):
                    self._act(entity, verb, step, again, view)
                    after.append(again)
            after += [] if after else [one]
        return after

    def _act(self, entity: str, verb: str, step: Block, course: Course, view: View) -> None:
        """Add the rules of a service called on an entity: its own, or those of a script or scene."""
        name = entity.partition(".")[2]
        if domain_of(entity) == "script" and verb == "turn_on":
            self._script(name, part_of(step, *DATA).get("variables"), step, course, view)
        elif domain_of(entity) == "scene" and verb == "turn_on":
            scene = view.home.scenes.get(slug(view.registry.find(entity).unique)) or view.home.scenes.get(name)
            self._set_states(scene.get("entities") if scene else None, step, course, view)
        else:
            for one, data in _data_of(f"{domain_of(entity)}.{verb}", step, course, view):
                self._add(entity, verb, data, step, one, view)

    def _script(self, name: str, data: Any, step: Block, course: Course, view: View) -> list[Course]:
        """Return the courses behind a script with these values."""
        script = view.home.scripts.get(name)
        if isinstance(script, Block) and "use_blueprint" in script:
            script = view.home.by_blueprint(script, "script")
        if not isinstance(script, Block) or name in self._scripts or len(self._scripts) >= DEEPEST:
            view.tally.add(reasons.LOOP if isinstance(script, Block) else reasons.SCENE, step)
            return [course]
        given = {key: render(value, course, view) for key, value in data.items()} if isinstance(data, Block) else {}
        values = {key: data[key] if len(each) > 1 or each[0][1] is None else each[0][1] for key, each in given.items()}
        self._scripts.append(name)
        stops = len(self._stops)
        scope = {**part_of(script, "variables"), **values}
        after = self._inner(script.get("sequence", []), [course], replace(view, scope=scope))
        self._scripts.pop()
        is_error = len(self._stops) > stops and all(self._stops[stops:])
        return after or ([] if is_error else [course])

    def _set_states(self, entities: Any, step: Block, course: Course, view: View) -> None:
        """Add the rules of a scene, which brings entities to states."""
        if not isinstance(entities, Block):
            view.tally.add(reasons.SCENE, step)
            return
        each = ((member, given) for name, given in entities.items() for member in view.home.members(str(name)))
        for entity, given in each:
            state = str(given.get("state") if isinstance(given, Block) else given)
            if service := set_service(entity, state):
                self._add(entity, service, {"hvac_mode": state}, step, course, view)
            else:
                view.tally.add(reasons.STATE, step)

    def _call_device(self, step: Block, courses: list[Course], view: View) -> None:
        """Add the rules of an action that the user interface made."""
        domain = str(step.get("domain"))
        if domain in MESSAGES:
            view.tally.add(reasons.NOTIFICATION, step)
        elif "entity_id" not in step:
            view.tally.add(reasons.DEVICE, step)
        for name in as_list(step.get("entity_id")):
            entity = entity_of(name, view, step)
            for course in courses if entity else ():
                self._add(str(entity), called_service(domain, str(step["type"])), step, step, course, view)

    def _add(self, entity: str, service: str, data: Any, step: Block, course: Course, view: View) -> None:
        """Add the rule of a service called on an entity, unless it takes back by a delay what the event did."""
        self._spend(1)
        kind, action = view.registry.type_of(entity), action_name(entity, service, data)
        if kind is None or action is None:
            view.tally.add(reasons.DEVICE if kind is None else reasons.SERVICE, step)
            return
        done = self._done.setdefault((course.start, entity), [])
        if course.late and is_undone(action, done):
            view.tally.add(reasons.REVERSAL, step)
            return
        done.append(action)
        rule, when = (course.start.part, Part(entity, kind, action)), view.when
        when = when - OF_SUN if course.start.part.entity == SUN else when
        self.rules[rule] = self.rules.get(rule, when) & when


def _data_of(service: str, step: Block, course: Course, view: View) -> list[tuple[Course, Block]]:
    """Return the data of a call, each with its course, with rendered values that name an action."""
    found = [(course, step.with_values({**part_of(step, *DATA), **step}))]
    for key in table()["values"].get(service, {}):
        each = [(one, data, render(data.get(key, ""), one, view)) for one, data in found]
        found = [(end, data.with_values({**data, key: text})) for _, data, ends in each for end, text in ends]
    return found


def _with_item(view: View, item: Any) -> View:
    """Return the view of one time round a loop over items."""
    named = {f"repeat.item.{key}": value for key, value in item.items()} if isinstance(item, Block) else {}
    return replace(view, scope={**view.scope, "repeat.item": item, **named})


def _targets(domain: str, verb: str, step: Block, course: Course, view: View) -> Iterator[tuple[Course, str]]:
    """Yield the entities that a call names or targets by area and the like, each with its course."""
    scene = Block({"entity_id": step["scene"]}) if "scene" in step else None
    holders = [scene] if scene else [step.get("target"), first_of(step, *DATA), step]
    if not any(isinstance(holder, Block) and {"entity_id", *TARGETS} & holder.keys() for holder in holders):
        view.tally.add(reasons.SERVICE, step)
    for holder in holders:
        if not isinstance(holder, Block):
            if holder is not None:
                view.tally.add(unread_reason(holder), step)
            continue
        for one, name in _names(holder.get("entity_id"), course, view):
            if name in ("all", "none"):
                every = [e.name for e in view.registry.entities.values() if e.enabled and domain_of(e.name) == domain]
                yield from ((one, entity) for entity in every if name == "all")
                if not every:
                    view.tally.add(view.registry.lacking, step)
            elif entity := entity_of(name, view, step):
                members = [member for member in view.home.members(entity) if domain_fits(domain, member)]
                yield from ((one, member) for member in members)
                if not members:
                    view.tally.add(reasons.SERVICE, step)
        for key in TARGETS:
            for one, name in _names(holder.get(key), course, view):
                inside = view.registry.targets(key, name) if isinstance(name, str) else []
                found = [e for e in inside if domain_fits(domain, e) and action_name(e, verb)]
                yield from ((one, entity) for entity in found)
                if not found:
                    view.tally.add(view.registry.lacking if isinstance(name, str) else reasons.TEMPLATE, step)


def variable_list(value: Any, view: View) -> Any:
    """Return the list that a template names by its variable or writes out; any other value as it is."""
    form = EXPRESSION.fullmatch(value.strip()) if isinstance(value, str) else None
    found = view.scope.get(form[1].strip(), value) if form else value
    inner = EXPRESSION.fullmatch(found.strip()) if isinstance(found, str) else None
    found = literals(inner[1]) if inner and inner[1].startswith("[") else found
    return found if isinstance(found, list) else value


def _names(value: Any, course: Course, view: View) -> Iterator[tuple[Course, Any]]:
    """Yield the texts of a list or of a variable that holds one; open templates as they are."""
    for item in as_list(variable_list(value, view)):
        for one, text in render(item, course, view):
            for name in [item] if text is None else as_list(text):
                yield one, name
