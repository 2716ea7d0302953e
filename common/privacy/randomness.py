"""Where noise comes from: a generator whose key nobody can guess.

Caveat, named in every claim: noise is drawn and added in float64, whose numbers are not evenly spaced. Which numbers can come
out therefore depends a little on what the noise hides (Mironov 2012), and the guarantee is that of real-valued noise.
Philox passes every public test of randomness but is no certified cipher; each release takes a new key.
"""

import secrets

import numpy as np


def fresh_generator() -> np.random.Generator:
    """A generator keyed with 256 bits of the operating system's entropy; take a new one for each release, keep none."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(secrets.randbits(256))))
