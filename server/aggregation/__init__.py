"""Pure functions on arrays, named by the maths."""
