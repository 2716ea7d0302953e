"""Product names of the generated demo data: kinds and things by shelf of a department store."""

SHELVES: dict[str, tuple[str, str]] = {
    "coffee": (
        "steel, travel, glass, Italian",
        "espresso pot, coffee grinder, milk frother, coffee scale, cup set, filter",
    ),
    "tea": ("cast-iron, porcelain, Japanese, herbal", "teapot, tea tin, tea strainer, teacup, tea sampler, kettle"),
    "baking": (
        "silicone, wooden, large, enamel",
        "cake tin, rolling pin, mixing bowl, whisk, cookie cutter, proofing basket",
    ),
    "garden": (
        "folding, copper, long-handled, children's",
        "watering can, hand trowel, pruning shears, rake, seed tray, hoe",
    ),
    "camping": (
        "two-person, ultralight, winter, family",
        "tent, sleeping bag, camp stove, head torch, rain cover, ground mat",
    ),
    "fishing": ("fly, sea, carp, telescopic", "fishing rod, fishing reel, line spool, lure box, landing net, waders"),
    "cycling": ("city, mountain, racing, electric", "bicycle helmet, bike lock, saddle, pannier, tyre set, bike light"),
    "running": ("trail, road, winter, reflective", "running shoes, running vest, running socks, hip belt, shorts, cap"),
    "photography": ("compact, wide-angle, carbon, waterproof", "camera, lens, tripod, camera bag, filter kit, flash"),
    "painting": ("oil, watercolour, acrylic, student", "paint set, brush set, canvas pad, easel, palette, varnish"),
    "sewing": ("cotton, linen, denim, silk", "fabric roll, thread set, dress pattern, ribbon, button box, patch kit"),
    "music": (
        "acoustic, electric, bass, beginner's",
        "guitar, guitar strings, guitar strap, tuner, plectrum set, amplifier",
    ),
    "board games": (
        "cooperative, travel, strategy, party",
        "board game, card game, dice set, puzzle, quiz box, score pad",
    ),
    "baby": ("organic, padded, knitted, first", "baby blanket, baby carrier, bib set, night light, bath towel, rattle"),
    "dogs": (
        "puppy, large-breed, reflective, leather",
        "dog collar, dog lead, dog bed, chew toy, feeding bowl, dog coat",
    ),
    "aquarium": (
        "tropical, nano, saltwater, planted",
        "fish tank, tank heater, water pump, gravel bag, fish food, lamp",
    ),
    "office": ("standing, ergonomic, oak, compact", "desk, desk chair, monitor arm, desk lamp, footrest, drawer unit"),
    "smart home": ("wireless, outdoor, indoor, solar", "doorbell, motion detector, smart bulb, thermostat, siren, hub"),
}
"""Shelf -> kinds, things; each combination of both is an item."""
