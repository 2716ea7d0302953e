"""Formulas in other units of their variables."""

from collections.abc import Callable, Mapping

from common.logic.formula import Always, And, Atom, Eventually, Formula, Implies, Linear, Not, Or, Until


def rescaled(phi: Formula, mean: Mapping[str, float], std: Mapping[str, float]) -> Formula:
    """Return φ for traces z = (x − mean) / std: Σ w·x ≤ c becomes Σ (w·std)·z ≤ c − Σ w·mean.

    Robustness of φ on x is that of the result on z.
    """

    def on_z(atom: Atom) -> Atom:
        terms = atom.expression.terms
        shift = sum(factor * mean[name] for name, factor in terms)
        return Atom(Linear(tuple((n, factor * std[n]) for n, factor in terms)), atom.relation, atom.bound - shift)

    return _map_atoms(phi, on_z)


def normalized(phi: Formula) -> Formula:
    """Return φ with every atom divided by the size of its first factor.

    `2*x - y <= 3` becomes `x - 0.5*y <= 1.5`.
    """

    def divide(atom: Atom) -> Atom:
        size = abs(atom.expression.terms[0][1])
        return Atom(atom.expression * (1 / size), atom.relation, atom.bound / size)

    return _map_atoms(phi, divide)


def with_digits(phi: Formula, digits: int) -> Formula:
    """Return φ with numbers of that many significant digits, for people."""

    def shorten(atom: Atom) -> Atom:
        terms = tuple((name, float(f"{factor:.{digits}g}")) for name, factor in atom.expression.terms)
        return Atom(Linear(terms), atom.relation, float(f"{atom.bound:.{digits}g}"))

    return _map_atoms(phi, shorten)


def _map_atoms(phi: Formula, change: Callable[[Atom], Atom]) -> Formula:
    match phi:
        case Atom():
            return change(phi)
        case Not(part):
            return Not(_map_atoms(part, change))
        case And(parts):
            return And(tuple(_map_atoms(part, change) for part in parts))
        case Or(parts):
            return Or(tuple(_map_atoms(part, change) for part in parts))
        case Implies(left, right):
            return Implies(_map_atoms(left, change), _map_atoms(right, change))
        case Always(a, b, part):
            return Always(a, b, _map_atoms(part, change))
        case Eventually(a, b, part):
            return Eventually(a, b, _map_atoms(part, change))
        case Until(a, b, left, right):
            return Until(a, b, _map_atoms(left, change), _map_atoms(right, change))
