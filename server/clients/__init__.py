"""Clients of a run: enrolment, names, ledgers, presence."""
