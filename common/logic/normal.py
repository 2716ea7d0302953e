"""Negation normal form: an equivalent formula without ¬ and → (algorithms.md §3.4)."""

from common.logic.formula import Always, And, Atom, Eventually, Formula, Implies, Not, Or, Relation, Until, conjunction

OPPOSITE: dict[Relation, Relation] = {"<=": ">", ">": "<=", ">=": "<", "<": ">="}


def normal_form(phi: Formula) -> Formula:
    """Move negations into the atoms; the result has no Not and no Implies.

    Truth and robustness are unchanged on every trace.
    """
    match phi:
        case Atom():
            return phi
        case Not(part):
            return _negate(part)
        case And(parts):
            return And(tuple(map(normal_form, parts)))
        case Or(parts):
            return Or(tuple(map(normal_form, parts)))
        case Implies(left, right):
            return Or((_negate(left), normal_form(right)))
        case Always(a, b, part):
            return Always(a, b, normal_form(part))
        case Eventually(a, b, part):
            return Eventually(a, b, normal_form(part))
        case Until(a, b, left, right):
            return Until(a, b, normal_form(left), normal_form(right))


def _negate(phi: Formula) -> Formula:
    """Return ¬φ in normal form."""
    match phi:
        case Atom(expression, relation, bound):
            return Atom(expression, OPPOSITE[relation], bound)
        case Not(part):
            return normal_form(part)
        case And(parts):
            return Or(tuple(map(_negate, parts)))
        case Or(parts):
            return And(tuple(map(_negate, parts)))
        case Implies(left, right):
            return And((normal_form(left), _negate(right)))
        case Always(a, b, part):
            return Eventually(a, b, _negate(part))
        case Eventually(a, b, part):
            return Always(a, b, _negate(part))
        case Until():
            return _negate_until(phi)


def _negate_until(phi: Until) -> Formula:
    """Return ¬(φ U_[a,b] ψ) without a new operator: ⋀_{k=a..b} (¬ψ at k, or ¬φ somewhere in [0, k])."""
    left, right = _negate(phi.phi), _negate(phi.psi)
    return conjunction([Or((Always(k, k, right), Eventually(0, k, left))) for k in range(phi.a, phi.b + 1)])


def atom_count(phi: Formula) -> int:
    """Return the number of atoms of φ with every window written out."""
    match phi:
        case Atom():
            return 1
        case Not(part):
            return atom_count(part)
        case And(parts) | Or(parts):
            return sum(map(atom_count, parts))
        case Implies(left, right):
            return atom_count(left) + atom_count(right)
        case Always(a, b, part) | Eventually(a, b, part):
            return (b - a + 1) * atom_count(part)
        case Until(_, b, left, right):
            return (b + 1) * (atom_count(left) + atom_count(right))
