"""Cryptographically seeded generators for DP noise.

Noise is drawn and added in float64, whose numbers are not evenly spaced.
The set of possible outputs therefore depends slightly on the private vector (Mironov 2012).
Every claim names this limit: the guarantee is that of real-valued noise.
Philox passes public tests of randomness but is not a certified cipher; each release takes a new key.
"""

import secrets

import numpy as np


def fresh_generator() -> np.random.Generator:
    """Return a new generator for one release, keyed with 256 bits of the operating system's entropy."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(secrets.randbits(256))))
