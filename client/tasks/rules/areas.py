"""Rooms of a home's devices, by area or by name; they order a home's own list and never leave it."""

import re
import unicodedata
from functools import lru_cache

import numpy as np

from client.tasks.rules.data.homes import FLOOR_MARK, Device, Home
from common.arrays import Flags, Floats
from common.tasks.rules.vocabulary import Edges, RuleCatalogue

SAME, OPEN, FLOOR, OTHER = 1.0, 0.5, 0.25, 0.0
"""Nearness of two devices: one room or thing, undecided, other rooms of one floor, other rooms."""


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """Return the words of a name in lower case, without accents; of an entity id, those behind the point."""
    plain = unicodedata.normalize("NFKD", text.rpartition(".")[2].casefold().replace("ß", "ss"))
    return frozenset(re.findall(r"[^\W_]+", "".join(c for c in plain if not unicodedata.combining(c))))


ROOMS = words(
    "attic balcony basement bath bathroom bedroom carport cellar conservatory corridor den dining drive driveway ensuite "
    "entrance garage garden gym hall hallway kitchen landing laundry library living loft lounge nursery office pantry patio "
    "playroom porch shed stairs staircase study sunroom terrace toilet utility veranda wardrobe wc workshop "
    "bad badezimmer balkon buro dachboden diele esszimmer flur garten gastezimmer kammer keller kinderzimmer kuche "
    "schlafzimmer terrasse treppenhaus wohnzimmer chambre couloir cuisine cave entree grenier salon salle jardin "
    "badkamer keuken slaapkamer woonkamer zolder tuin bano cocina dormitorio pasillo sala cucina soggiorno"
)
"""Words that name a room, without accents."""

SHORTENED = {"bath": "bathroom", "bed": "bedroom", "badezimmer": "bad", "hallway": "hall"}
"""Words for a room that has another -> the other."""

GENERIC = words(
    "a alarm all and area at binary blind blinds brightness button camera climate close closed co2 contact cover curtain "
    "detector device door doors energy entity fan floor group heater heating home house humidity illuminance in is lamp "
    "leak level light lights lock luminance main media meter mode moisture motion of off on open occupancy outlet outside "
    "person plug player power presence relay remote robot room sensor shade shutter shutters siren smart smoke socket spot "
    "state status strip switch temperature the thermostat tv vacuum valve wall water window windows zone"
)
"""Words of a name that tell the kind of a device, not the thing that it belongs to."""

VAGUE = frozenset({"Binary sensor", "Choice helper", "Number helper", "Sensor", "Switch", "Timer", "Toggle helper"})
"""Types of devices that may be for anything: a rule of one is no evidence for another."""


@lru_cache(maxsize=4096)
def room_of(device: Device) -> frozenset[str]:
    """Return the words that name a device's room, of its area, else of its name; none without a room."""
    area = (device.area or "").rpartition(FLOOR_MARK)[2]
    named = frozenset(SHORTENED.get(word, word) for word in words(area or device.name))
    return named - {"room"} if area else named & ROOMS


def floor_of(device: Device) -> str:
    """Return the floor of a device's area; empty if it is unknown."""
    return (device.area or "").rpartition(FLOOR_MARK)[0]


def nearness_of(a: Device, b: Device) -> float:
    """Return how near two devices are: `SAME`, `OPEN`, `FLOOR` or `OTHER`."""
    if a.area and b.area:
        return SAME if a.area == b.area else FLOOR if floor_of(a) and floor_of(a) == floor_of(b) else OTHER
    first, second = room_of(a), room_of(b)
    if first and second:
        return SAME if first == second else OPEN if first & second else OTHER
    shared = (words(a.name) & words(b.name)) - GENERIC - ROOMS
    return SAME if any(len(word) > 2 and word.isalpha() for word in shared) else OPEN


@lru_cache(maxsize=16)
def nearness(home: Home) -> Floats:
    """Return the nearness of each two devices of a home, N × N."""
    return np.array([[nearness_of(a, b) for b in home.devices] for a in home.devices]).reshape((len(home.devices),) * 2)


def lacks_evidence(home: Home, rules: Edges, catalogue: RuleCatalogue) -> Flags:
    """Return the mask of rules between rooms of which the home has none of their kind, N × N × R.

    A kind is both device types and the relation; an own rule of that kind between two rooms is evidence. Devices of types
    that do not tell their purpose have no kind, and count as apart unless they are in one room.
    """
    types, near = np.array([device.entity for device in home.devices], np.int64), nearness(home)
    is_vague = np.array([catalogue.entities[kind] in VAGUE for kind in types.tolist()], bool)
    vague: Flags = (is_vague[:, None] | is_vague[None]) & (near < SAME)
    apart: Flags = near < OPEN
    lacks = np.repeat((apart | vague)[:, :, None], len(catalogue.relations), axis=2)
    for i, j, r in rules[apart[rules[:, 0], rules[:, 1]]].tolist():
        lacks[np.ix_(types == types[i], types == types[j], np.array([r]))] = False
    return lacks | vague[:, :, None]
