"""Parser from text to formulas, the inverse of `str`; faults with their place in the text.

formula    = either [ "->" formula ]
either     = all { "|" all }
all        = until { "&" until }
until      = unary [ "U[a,b]" unary ]
unary      = "!" unary | "G[a,b]" unary | "F[a,b]" unary | "(" formula ")" | atom
atom       = [ "-" ] term { ("+" | "-") term } ( "<=" | ">=" | "<" | ">" ) number
term       = [ number "*" ] ( name | '"' any name '"' )
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, NoReturn, cast

from common.errors import ConfigError
from common.logic.formula import (
    PLAIN_NAME,
    Always,
    And,
    Atom,
    Eventually,
    Formula,
    Implies,
    Linear,
    Not,
    Or,
    Relation,
    Until,
    horizon,
)
from common.logic.plan import TooManyAlternativesError, plan

TOKENS = re.compile(
    r"\s*(?:(?P<window>[GFU]\s*\[\s*(?P<a>\d+)\s*,\s*(?P<b>\d+)\s*\])"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    rf'|(?P<name>{PLAIN_NAME.pattern}|"[^"\n]+")'
    r"|(?P<sign>->|<=|>=|[<>!&|()*+-]))"
)
EXAMPLE = "a formula looks like `G[0,1] (volume <= 310.5)`"
MAX_LENGTH, MAX_DEPTH = 4000, 100
"""Characters of a text, and levels of nested operators; a pair of parentheses counts as three."""


class _Token(NamedTuple):
    kind: str
    text: str
    column: int
    window: tuple[int, int]


def parse(text: str) -> Formula:
    """Parse a formula.

    Raises:
        ConfigError: The text is not a formula; names the column of the fault.
    """
    return _read(text)[0]


def _read(text: str) -> "tuple[Formula, _Reader]":
    """Return the formula of a text and its reader, which knows where its operands and variables begin."""
    if len(text) > MAX_LENGTH:
        refuse(MAX_LENGTH + 1, f"the text has {len(text):,} characters, at most {MAX_LENGTH:,} are read")
    reader = _Reader(_tokens(text))
    phi = reader.formula()
    reader.expect("end")
    return phi, reader


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while text[at:].strip():
        match = TOKENS.match(text, at)
        if match is None:
            refuse(len(text) - len(text[at:].lstrip()) + 1, f"{text[at:].split()[0]!r} is not part of a formula")
        kind = str(match.lastgroup) if match["window"] is None else "window"
        window = (int(match["a"]), int(match["b"])) if kind == "window" else (0, 0)
        if window[1] < window[0]:
            refuse(match.start(kind) + 1, f"the window of {match[kind]!r} is empty; write [a,b] with 0 <= a <= b")
        tokens.append(_Token(kind, match[kind], match.start(kind) + 1, window))
        at = match.end()
    return [*tokens, _Token("end", "end", len(text) + 1, (0, 0))]


def refuse(column: int, problem: str) -> NoReturn:
    """Raise ConfigError for a fault at a column of the text."""
    raise ConfigError(f"formula, column {column}: {problem}; {EXAMPLE}")


class _Reader:
    """Recursive descent over the tokens, one method per line of the grammar.

    Attributes:
        variables: Variable -> column at which it occurs first, in this order.
        columns: Identity of a formula that was read, as by `id` -> column at which it begins, from 1.
    """

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0
        self.variables: dict[str, int] = {}
        self.columns: dict[int, int] = {}

    def formula(self) -> Formula:
        return self._located(self._implication)

    def _located(self, read: Callable[[], Formula]) -> Formula:
        """Return the formula that `read` returns, and remember the column at which it begins."""
        column, self._depth = self._next.column, self._depth + 1
        if self._depth > MAX_DEPTH:
            refuse(column, "the formula is nested too deeply")
        phi = read()
        self.columns.setdefault(id(phi), column)
        self._depth -= 1
        return phi

    def _implication(self) -> Formula:
        left = self._chain("|", self._all, Or)
        return Implies(left, self.formula()) if self._took("->") else left

    def _all(self) -> Formula:
        return self._chain("&", lambda: self._located(self._until), And)

    def _chain(self, sign: str, read: Callable[[], Formula], join: type[And] | type[Or]) -> Formula:
        members = [read()]
        while self._took(sign):
            members.append(read())
        return join(tuple(members)) if len(members) > 1 else members[0]

    def _until(self) -> Formula:
        left = self._unary()
        if not self._next.text.startswith("U") or self._next.kind != "window":
            return left
        (a, b), _ = self._next.window, self._advance()
        return Until(a, b, left, self._unary())

    def _unary(self) -> Formula:
        return self._located(self._one)

    def _one(self) -> Formula:
        token = self._next
        if token.kind == "window" and token.text[0] != "U":
            self._advance()
            return (Always if token.text[0] == "G" else Eventually)(*token.window, self._unary())
        if self._took("!"):
            return Not(self._unary())
        if self._took("("):
            inner = self.formula()
            self.expect(")")
            return inner
        return self._atom()

    def _atom(self) -> Formula:
        column, terms = self._next.column, [self._term(-1.0 if self._took("-") else 1.0)]
        while self._next.text in ("+", "-"):
            terms.append(self._term(-1.0 if self._advance().text == "-" else 1.0))
        if self._next.text not in ("<=", ">=", "<", ">"):
            refuse(self._next.column, f"expected <=, >=, < or >, found {self._next.text!r}")
        relation = cast(Relation, self._advance().text)
        bound = -self._number() if self._took("-") else self._number()
        try:
            return Atom(Linear(tuple(terms)), relation, bound)
        except ConfigError as error:
            refuse(column, str(error))

    def _term(self, sign: float) -> tuple[str, float]:
        factor = 1.0
        if self._next.kind == "number":
            factor = self._number()
            self.expect("*")
        column, name = self._next.column, self.expect("name").strip('"')
        self.variables.setdefault(name, column)
        return name, sign * factor

    def _number(self) -> float:
        return float(self.expect("number"))

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _advance(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _took(self, sign: str) -> bool:
        matches = self._next.kind == "sign" and self._next.text == sign
        self._at += matches
        return matches

    def expect(self, what: str) -> str:
        """Return the text of the next token, which must be `what`: a sign itself, or a kind of token."""
        token = self._next
        if what not in (token.kind, token.text if token.kind == "sign" else ""):
            refuse(token.column, f"expected {what!r}, found {token.text!r}")
        return self._tokens[self._at].text if what == "end" else self._advance().text


CAP = 256
"""Maximum number of dependent alternatives of a user's formula: it is prepared within a second."""


@lru_cache(maxsize=16)
def read_formula(text: str, steps: int, variables: tuple[str, ...] = ()) -> Formula:
    """Return the formula of a text that traces of `steps` steps can satisfy.

    Args:
        text: Text of the formula.
        steps: Number of steps of a trace.
        variables: Names of the variables; empty: any.

    Raises:
        ConfigError: The text is no formula, needs more steps, names another variable, contradicts itself, or has more than
            `CAP` dependent alternatives. The column of the fault is named.
    """
    phi, reader = _read(text)
    for name, column in reader.variables.items():
        if variables and name not in variables:
            refuse(column, f"the federation measures {', '.join(variables)}; the formula names '{name}'")
    if horizon(phi) >= steps:
        column, needed = _longest(phi, reader.columns), horizon(phi) + 1
        refuse(column, f"the formula has {needed} steps, but a forecast has {steps}; shorten its windows")
    try:
        plan(phi, CAP)
    except TooManyAlternativesError as error:
        refuse(1, str(error))
    except ConfigError as error:
        refuse(_fault_column(phi, reader.columns), str(error))
    return phi


def _longest(phi: Formula, columns: Mapping[int, int]) -> int:
    """Return the column of the conjunct whose windows end last."""
    while isinstance(phi, And):
        phi = max(phi.members, key=horizon)
    return columns.get(id(phi), 1)


def _fault_column(phi: Formula, columns: Mapping[int, int]) -> int:
    """Return the column of the first conjunct with which φ cannot be planned."""
    if isinstance(phi, And):
        for k, member in enumerate(phi.members):
            if not is_plannable(member):
                return _fault_column(member, columns)
            if k and not is_plannable(And(phi.members[: k + 1])):
                return columns.get(id(member), 1)
    if isinstance(phi, Always | Eventually) and not is_plannable(phi.phi):
        return _fault_column(phi.phi, columns)
    return columns.get(id(phi), 1)


def is_plannable(phi: Formula) -> bool:
    """Return True if φ can be satisfied, with at most `CAP` dependent alternatives."""
    try:
        plan(phi, CAP)
    except ConfigError:
        return False
    return True
