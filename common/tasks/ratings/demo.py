"""Vocabulary of the generated demo raters: 240 films."""

from functools import cache

from common.tasks.ratings.vocabulary import ProductCatalogue

MOODS = (
    "Quiet, Last, Burning, Hidden, Broken, Silver, Northern, "
    "Endless, Borrowed, Forgotten, Crooked, Golden, Empty, Secret, Restless"
)
SUBJECTS = (
    "Harbour, Summer, Orchard, Letter, Bridge, Winter, Lighthouse, Promise, "
    "Garden, Island, Mirror, Journey, Tower, Song, River, Door"
)


@cache
def demo_products() -> ProductCatalogue:
    """Return 240 films rated with one to five stars; as with MovieLens, r/5 is the share of the scale."""
    names = (f"The {mood} {subject}" for subject in SUBJECTS.split(", ") for mood in MOODS.split(", "))
    return ProductCatalogue(items=tuple(names), low=0, high=5)
