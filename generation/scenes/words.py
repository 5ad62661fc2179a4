"""The words that scene sentences are made of, and what each stands for.

Every table maps the words of a sentence to one canonical value, so that "bigger" and
"larger" are the same scene.
"""

from __future__ import annotations

NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            ("one", "a single", "exactly one"),
            ("two", "exactly two"),
            ("three", "exactly three"),
            ("four", "exactly four"),
            ("five", "exactly five"),
            ("six", "exactly six"),
            ("seven", "exactly seven"),
            ("eight", "exactly eight"),
            ("nine", "exactly nine"),
            ("ten", "exactly ten"),
        ),
        start=1,
    )
    for word in words
}

COLOURS = {
    "red": (214, 64, 58),
    "orange": (240, 145, 52),
    "yellow": (246, 205, 70),
    "green": (74, 158, 92),
    "blue": (58, 114, 196),
    "purple": (130, 86, 176),
    "pink": (238, 140, 170),
    "brown": (140, 96, 64),
    "black": (46, 48, 56),
    "white": (250, 250, 247),
    "grey": (140, 146, 154),
}

# Things that can be counted, placed and compared: (singular, plural).
THINGS = {
    "circle": "circles",
    "square": "squares",
    "triangle": "triangles",
    "star": "stars",
    "heart": "hearts",
    "hexagon": "hexagons",
    "diamond": "diamonds",
    "ball": "balls",
    "apple": "apples",
    "balloon": "balloons",
    "flower": "flowers",
    "fish": "fish",
    "cup": "cups",
    "book": "books",
    "vase": "vases",
    "tree": "trees",
    "bird": "birds",
    "boat": "boats",
    "box": "boxes",
    "candle": "candles",
    "car": "cars",
    "house": "houses",
    "mushroom": "mushrooms",
}

PLACES = (
    "on a plate",
    "on a table",
    "on a lawn",
    "on a beach",
    "in the sky",
    "in the snow",
    "in a park",
    "in a room",
    "in a field",
    "at night",
)

RELATIONS = {
    "to the left of": "left",
    "left of": "left",
    "to the right of": "right",
    "right of": "right",
    "above": "above",
    "below": "below",
    "inside": "inside",
    "in front of": "front",
    "behind": "behind",
}
# What a wrong picture shows instead; the first, the opposite, comes up most often. Nothing in
# a row can be true together with the row's own word.
CONFUSIONS = {
    "left": ("right", "right", "right", "above", "below"),
    "right": ("left", "left", "left", "above", "below"),
    "above": ("below", "below", "below", "left", "right"),
    "below": ("above", "above", "above", "left", "right"),
    "inside": ("left", "right", "above"),
    "front": ("behind", "behind", "left", "right"),
    "behind": ("front", "front", "left", "right"),
    "on": ("under", "under", "beside"),
    "under": ("on", "on", "beside"),
    "beside": ("on", "under"),
    "larger": ("smaller",),
    "smaller": ("larger",),
    "taller": ("shorter",),
    "shorter": ("taller",),
    "wider": ("narrower",),
    "narrower": ("wider",),
}

SUPPORTS = {
    "on": "on",
    "on top of": "on",
    "under": "under",
    "next to": "beside",
    "beside": "beside",
}
FURNITURE = ("table", "bench", "bridge")

COMPARISONS = {
    "larger": "larger",
    "bigger": "larger",
    "smaller": "smaller",
    "taller": "taller",
    "shorter": "shorter",
    "wider": "wider",
    "narrower": "narrower",
}

# Objects that come in several outlines, and the adjectives for these.
SHAPED_THINGS = (
    "window", "mirror", "sign", "kite", "balloon", "rug", "clock", "cake", "cushion", "cookie",
)  # fmt: skip
OUTLINES = {
    "round": "circle",
    "circular": "circle",
    "square": "square",
    "triangular": "triangle",
    "star-shaped": "star",
    "heart-shaped": "heart",
    "hexagonal": "hexagon",
    "diamond-shaped": "diamond",
    "oval": "oval",
}

PEOPLE = ("man", "woman", "boy", "girl", "child")

ACTIONS = {
    "running": "running",
    "jumping": "jumping",
    "standing still": "standing",
    "waving": "waving",
    "kneeling": "kneeling",
    "sleeping on the ground": "lying",
    "lying on the ground": "lying",
    "sitting on a chair": "sitting",
    "standing on a chair": "standing_on_chair",
    "kicking a ball": "kicking",
    "holding a ball overhead": "ball_overhead",
    "carrying a box": "carrying",
    "pushing a box": "pushing",
    "sitting on a box": "sitting_on_box",
    "holding a balloon": "balloon",
    "flying a kite": "kite",
    "climbing a ladder": "climbing",
    "carrying a ladder": "ladder_carried",
    "reading a book": "reading",
    "doing a handstand": "handstand",
}

# What a body can be like, in groups that exclude each other.
BODY_STATES = {
    "arms": {
        "both arms raised": "both_up",
        "one arm raised": "one_up",
        "both arms lowered": "both_down",
        "both arms spread wide": "spread",
        "both hands on the hips": "hips",
    },
    "legs": {
        "one leg lifted": "one_lifted",
        "both legs spread wide": "apart",
        "both legs close together": "together",
    },
    "eyes": {
        "open eyes": "open",
        "closed eyes": "closed",
        "one eye closed": "one_closed",
    },
    "mouth": {
        "a wide open mouth": "open",
        "a closed mouth": "closed",
    },
    "hair": {"long hair": "long", "short hair": "short"},
}
TAILS = {"raised": "up", "lowered": "down", "straight up": "up", "hanging down": "down"}

# What may be absent: (owner, with it, in other words without naming it).
ABSENT = {
    "vase": ("table", "a vase", "a table with an empty top"),
    "clouds": ("blue sky", "clouds", "a clear blue sky"),
    "apples": ("tree", "red apples", "a plain green tree"),
    "picture": ("wall", "a picture", "a bare wall"),
    "hat": ("man", "a hat", "a bareheaded man"),
    "glasses": ("woman", "glasses", "a woman whose face is uncovered"),
    "car": ("street", "a car", "an empty street"),
    "boat": ("lake", "a boat", "a calm empty lake"),
    "chimney": ("house", "a chimney", "a house whose roof is smooth"),
    "candles": ("cake", "candles", "a cake with a plain top"),
    "leaves": ("tree", "leaves", "a bare tree"),
    "fish": ("glass tank", "fish", "a glass tank full of clear water only"),
}

ROOFS = {"pointed": "pointed", "flat": "flat", "domed": "domed"}
DOOR_STATES = {"an open": "open", "a closed": "closed"}
LIDS = {"trunk": "trunk", "hood": "hood", "door": "door"}
