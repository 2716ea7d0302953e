"""Ratings under local privacy, on real films: `python -m benchmarks.ratings` writes docs/results/ratings.md."""
