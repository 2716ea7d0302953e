"""SQL tables of a ledger."""

MARK = 0x6C6F6F6D
"""SQLite application id of a ledger."""

PLAIN, WITH_INCREASES, WITH_TRUST = VERSIONS = (1, 2, 3)
"""Values of `user_version`; a program that cannot read a version refuses the ledger.

A ledger gets version 2 when its budget is first raised, or first limited after releases, and version 3 with its first
release to a secure sum.
"""

SCHEMA = f"""
BEGIN;
PRAGMA application_id = {MARK};
PRAGMA user_version = {PLAIN};
CREATE TABLE ledger (lineage TEXT NOT NULL);
CREATE TABLE accounts (
  unit TEXT PRIMARY KEY, account TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, link TEXT NOT NULL,
  epsilon_now REAL NOT NULL, delta_now REAL NOT NULL
) STRICT;
CREATE TABLE releases (
  sequence INTEGER PRIMARY KEY, time TEXT NOT NULL,
  run TEXT NOT NULL, round INTEGER NOT NULL, phase TEXT NOT NULL, kind TEXT NOT NULL,
  unit TEXT NOT NULL, mechanism TEXT NOT NULL, neighbours TEXT NOT NULL, sensitivity REAL NOT NULL, noise REAL NOT NULL,
  account TEXT NOT NULL, cost REAL NOT NULL CHECK (cost > 0), status TEXT NOT NULL, link TEXT NOT NULL
) STRICT;
CREATE INDEX slots ON releases (run, round, phase, kind);
"""
"""Statements that create a ledger; the transaction is left open."""

INCREASES = (
    "CREATE TABLE IF NOT EXISTS raises (sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, unit TEXT NOT NULL,"
    " epsilon_before REAL NOT NULL, epsilon REAL NOT NULL CHECK (epsilon != epsilon_before), link TEXT NOT NULL) STRICT"
)
"""Statement that adds the table of budget increases.

Its rows are numbered and chained together with those of `releases`.
"""

TRUST = "ALTER TABLE releases ADD COLUMN trust TEXT NOT NULL DEFAULT 'local'"
"""Statement that adds the trust of a release (see `Terms.trust`)."""
