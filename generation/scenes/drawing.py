"""From a scene to its picture: one composer a kind of scene."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from generation.scenes import absence, acting
from generation.scenes.canvas import Box, Canvas, Colour, outline_of, shade
from generation.scenes.dice import Dice
from generation.scenes.people import SKIN, draw_cat, draw_face, draw_hand, look_of
from generation.scenes.scenery import draw_setting
from generation.scenes.things import (
    DRAWERS,
    WOOD,
    boat,
    car,
    draw_thing,
    flower,
    house,
    natural_box,
)
from generation.scenes.words import COLOURS

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL import Image

    from generation.scenes.grammar import Scene

LIVELY = ("red", "orange", "yellow", "blue", "purple", "pink")
GROUNDED = (
    "on a lawn",
    "in a park",
    "in a field",
    "on a beach",
    "in the snow",
    "in a room",
    "at night",
)
DRAWN_SIZE = 512


def draw(scene: Scene, seed: int, size: int = DRAWN_SIZE, hand: str = "") -> Image.Image:
    """Draw the scene as an RGB picture; equal (scene text, seed, size, hand) give equal pixels.

    Another ``hand`` lays the same scene out in another way, as a second generator would.
    """
    dice = Dice("scene", hand, scene.text, seed)
    canvas = Canvas(size, (245, 243, 238))
    COMPOSERS[scene.kind](canvas, scene, dice)
    return canvas.finish()


def colour_of(scene: Scene, slot: str, dice: Dice, avoid: Colour | None = None) -> Colour:
    """The named colour of a slot, or a lively one where the sentence leaves it open."""
    free = [COLOURS[name] for name in LIVELY if COLOURS[name] != avoid]
    chosen = dice.choice(free)
    if slot in scene.slots:
        return COLOURS[scene[slot]]
    return COLOURS["green"] if scene.get("thing", scene.get("things")) == "tree" else chosen


def _count(c: Canvas, scene: Scene, dice: Dice) -> None:
    """Scatter n things over cells of a grid, so that none hides another."""
    place, thing, n = scene.get("place"), scene["things"], int(scene["n"])
    setting = draw_setting(c, place, dice, horizon=0.22 if place in GROUNDED else None)
    colour = colour_of(scene, "colour", dice)
    region = setting.region
    columns = max(1, math.ceil(math.sqrt(n * region.w / region.h) - 0.001))
    columns = min(n, columns + (1 if n > 3 and dice.unit() < 0.4 else 0))
    rows = math.ceil(n / columns)
    cells = [(x, y) for y in range(rows) for x in range(columns)]
    width, height = region.w / columns, region.h / rows
    size = min(width, height, 0.3) * dice.between(0.74, 0.86)
    for x, y in sorted(dice.shuffled(cells)[:n], key=lambda cell: cell[1]):
        slack_x, slack_y = (width - size) * 0.45, (height - size) * 0.45
        cx = region.left + (x + 0.5) * width + dice.between(-slack_x, slack_x)
        cy = region.top + (y + 0.5) * height + dice.between(-slack_y, slack_y)
        draw_thing(c, thing, natural_box(thing, cx, cy, size), colour)


def _placed(c: Canvas, scene: Scene, dice: Dice) -> None:
    place = scene.get("place")
    draw_setting(c, place, dice, horizon=0.2 if place in GROUNDED else None)
    second = colour_of(scene, "colour2", dice)
    first = colour_of(scene, "colour", dice, avoid=second)
    a, b = _places(scene["relation"], dice)
    order = [("thing2", b, second), ("thing", a, first)]
    if scene["relation"] == "behind":
        order.reverse()
    for slot, (cx, cy, size), colour in order:
        draw_thing(c, scene[slot], natural_box(scene[slot], cx, cy, size), colour)


def _places(
    relation: str, dice: Dice
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Centre and size of the first and the second thing."""
    far, drift, size = dice.between(0.23, 0.27), dice.between(-0.05, 0.05), dice.between(0.26, 0.36)
    size2 = dice.between(0.26, 0.36)
    if relation in ("left", "right"):
        sign = -1 if relation == "left" else 1
        return (0.5 + sign * far, 0.52 + drift, size), (0.5 - sign * far, 0.52 - drift, size2)
    if relation in ("above", "below"):
        sign = -1 if relation == "above" else 1
        return (0.5 + drift, 0.52 + sign * far, size), (0.5 - drift, 0.52 - sign * far, size2)
    if relation == "inside":
        return (0.5 + drift, 0.54, 0.2), (0.5 + drift, 0.52, 0.72)
    near, back = (0.5 + drift, 0.66, 0.38), (0.5 - drift * 2, 0.4, 0.52)
    return (near, back) if relation == "front" else (back, near)


def _supported(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, "in a room" if scene["furniture"] != "bridge" else "on a lawn", dice)
    wood = COLOURS[scene["colour2"]] if "colour2" in scene.slots else WOOD
    colour = colour_of(scene, "colour", dice)
    beside = scene["support"] == "beside"
    cx = dice.between(0.36, 0.4) if beside else dice.between(0.46, 0.54)
    top = FURNITURE[scene["furniture"]](c, cx, 0.44 if beside else 0.7, wood)
    size = 0.26
    spots = {"on": (cx, top), "under": (cx, 0.88), "beside": (0.82, 0.88)}
    x, bottom = spots[scene["support"]]
    box = natural_box(scene["thing"], x, 0, size)
    draw_thing(c, scene["thing"], Box(x, bottom - box.h / 2, box.w, box.h), colour)


def table(c: Canvas, cx: float, width: float, wood: Colour) -> float:
    """A table that stands at the lower edge; returns the height of its top."""
    top, edge = 0.52, outline_of(wood)
    for x in (cx - 0.42 * width, cx + 0.42 * width):
        c.rect(Box(x, 0.72, 0.035, 0.36), shade(wood, 0.85), edge)
    c.rect(Box(cx, top + 0.02, width, 0.045), wood, edge, 0.01)
    return top


def _bench(c: Canvas, cx: float, width: float, wood: Colour) -> float:
    edge = outline_of(wood)
    for x in (cx - 0.4 * width, cx + 0.4 * width):
        c.rect(Box(x, 0.72, 0.05, 0.36), shade(wood, 0.8), edge)
    for y in (0.54, 0.575):
        c.rect(Box(cx, y, width, 0.03), wood, edge)
    return 0.525


def _bridge(c: Canvas, cx: float, width: float, wood: Colour) -> float:
    edge = outline_of(wood)
    c.rect(Box(cx, 0.71, width * 1.25, 0.38), wood, edge)
    c.rect(Box(cx, 0.545, width * 1.35, 0.05), shade(wood, 0.85), edge)
    c.ellipse(Box(cx, 0.9, width * 0.8, 0.56), (150, 196, 214))
    c.rect(Box(cx, 0.95, width * 1.3, 0.1), (112, 170, 196))
    return 0.52


FURNITURE: dict[str, Callable[[Canvas, float, float, Colour], float]] = {
    "table": table,
    "bench": _bench,
    "bridge": _bridge,
}


def _compared(c: Canvas, scene: Scene, dice: Dice) -> None:
    place = scene.get("place")
    draw_setting(c, place, dice, horizon=0.45 if place in GROUNDED else None)
    second = colour_of(scene, "colour2", dice)
    first = colour_of(scene, "colour", dice, avoid=second)
    word = scene["comparison"]
    big, small = dice.between(0.4, 0.46), dice.between(0.19, 0.24)
    more, less = {
        "larger": ((big, big), (small, small)), "smaller": ((big, big), (small, small)),
        "taller": ((0.24, 0.62), (0.26, 0.3)), "shorter": ((0.24, 0.62), (0.26, 0.3)),
        "wider": ((0.46, 0.3), (0.2, 0.32)), "narrower": ((0.46, 0.3), (0.2, 0.32)),
    }[word]  # fmt: skip
    mine, other = (more, less) if word in ("larger", "taller", "wider") else (less, more)
    left_first = dice.unit() < 0.5
    spots = _side_by_side(mine[0], other[0], left_first=left_first)
    for slot, x, (w, h), colour in (
        ("thing", spots[0], mine, first),
        ("thing2", spots[1], other, second),
    ):
        box = Box(x, 0.84 - h / 2, w, h)
        if word in ("larger", "smaller"):
            natural = natural_box(scene[slot], x, 0, w)
            box = Box(x, 0.84 - natural.h / 2, natural.w, natural.h)
        draw_thing(c, scene[slot], box, colour)


def _side_by_side(width: float, other: float, *, left_first: bool) -> tuple[float, float]:
    gap = (1 - width - other) / 3
    first, second = gap + width / 2, gap * 2 + width + other / 2
    return (first, second) if left_first else (1 - first, 1 - second)


def _shaped(c: Canvas, scene: Scene, dice: Dice) -> None:
    thing, place = scene["object"], scene.get("place")
    home = {"kite": "in the sky", "balloon": "in the sky", "sign": "on a lawn", "cookie": "on a plate",
            "cake": "on a table", "rug": "", "cushion": ""}.get(thing, "in a room")  # fmt: skip
    draw_setting(c, place or home, dice, horizon=0.82)
    colour = colour_of(scene, "colour", dice)
    if thing == "cookie" and "colour" not in scene.slots:
        colour = (206, 160, 104)
    size = dice.between(0.42, 0.5)
    box = Box(0.5 + dice.between(-0.06, 0.06), 0.42 + dice.between(-0.03, 0.03), size, size)
    if thing in ("cookie", "cake", "rug", "cushion"):
        box = Box(box.cx, box.cy + 0.09, size, size)
    acting.shaped_object(c, thing, _outline(scene["outline"]), box, colour)


def _outline(name: str) -> Callable[[Canvas, Box, Colour], None]:
    if name == "oval":
        return lambda c, b, colour: DRAWERS["circle"](
            c, Box(b.cx, b.cy, b.w * 1.22, b.h * 0.72), colour
        )
    return DRAWERS[name]


def _doing(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, scene.get("place") or dice.choice(("in a park", "in a room")), dice)
    look = look_of(scene["person"], colour_of(scene, "colour", dice), dice)
    acting.act(c, scene["action"], look, dice)


def _figure(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, scene.get("place") or dice.choice(("in a park", "in a room")), dice)
    look = look_of(scene["person"], colour_of(scene, "colour", dice), dice)
    acting.stand(c, scene.get("arms"), scene.get("legs"), look, dice)


def _face(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, "", dice)
    look = look_of(scene["person"], colour_of(scene, "colour", dice), dice)
    size = dice.between(0.66, 0.74)
    draw_face(c, look, scene.slots, Box(0.5 + dice.between(-0.05, 0.05), 0.56, size, size))


def _cat(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, scene.get("place") or "in a room", dice)
    default = dice.choice((COLOURS["orange"], COLOURS["grey"], COLOURS["brown"], COLOURS["black"]))
    colour = COLOURS[scene["colour"]] if "colour" in scene.slots else default
    size = dice.between(0.56, 0.66)
    draw_cat(
        c, Box(0.5 + dice.between(-0.08, 0.08), 0.88 - size / 2, size, size), colour, scene["tail"]
    )


def _hand(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, "", dice)
    box = Box(0.5 + dice.between(-0.05, 0.05), 0.5, 0.66, dice.between(0.72, 0.8))
    draw_hand(c, box, dice.choice(SKIN), int(scene["n"]))


def _absence(c: Canvas, scene: Scene, dice: Dice) -> None:
    absence.OWNERS[scene["thing"]](c, dice, present=scene["presence"] == "yes")


def _house(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, "in a field", dice, horizon=0.7)
    door = COLOURS[scene["door"]] if "door" in scene.slots else WOOD
    roof_colour = COLOURS[scene["roof_colour"]] if "roof_colour" in scene.slots else (150, 92, 80)
    colour = (
        COLOURS[scene["colour"]]
        if "colour" in scene.slots
        else dice.choice(((244, 226, 196), (226, 214, 206)))
    )
    size = dice.between(0.6, 0.68)
    house(
        c,
        Box(0.5 + dice.between(-0.08, 0.08), 0.88 - size / 2, size, size),
        colour,
        door=door,
        door_open=scene.get("door_state") == "open",
        roof=scene.get("roof", "pointed"),
        roof_colour=roof_colour,
        windows=int(scene.get("windows", "2")),
    )


def _car(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, "in a field", dice, horizon=0.6)
    c.rect(Box(0.5, 0.9, 1.2, 0.32), (126, 128, 134))
    for i in range(5):
        c.rect(Box(0.1 + 0.22 * i, 0.93, 0.1, 0.016), (240, 238, 228))
    wheels = COLOURS[scene["wheels"]] if "wheels" in scene.slots else (60, 62, 70)
    width = dice.between(0.66, 0.74)
    box = Box(0.5 + dice.between(-0.05, 0.05), 0.66, width, width / 1.8)
    car(c, box, colour_of(scene, "colour", dice), wheels=wheels, lid=scene.get("lid"))


def _boat(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, "in the sky", dice)
    c.gradient((96, 162, 190), (64, 128, 164), 0.7, 1.0)
    sail = COLOURS[scene["sail"]] if "sail" in scene.slots else (250, 248, 240)
    count = int(scene.get("sails", "1"))
    size = dice.between(0.58, 0.68)
    box = Box(0.5 + dice.between(-0.1, 0.1), 0.78 - size / 2, size, size)
    boat(c, box, colour_of(scene, "colour", dice, avoid=sail), (sail,) * count)
    c.gradient((80, 146, 178), (64, 128, 164), 0.76, 1.0)


def _flower(c: Canvas, scene: Scene, dice: Dice) -> None:
    draw_setting(c, "on a lawn", dice, horizon=0.78)
    size = dice.between(0.72, 0.8)
    box = Box(0.5 + dice.between(-0.08, 0.08), 0.92 - size / 2, size * 0.84, size)
    flower(c, box, colour_of(scene, "colour", dice), int(scene["petals"]))


COMPOSERS: dict[str, Callable[[Canvas, Scene, Dice], None]] = {
    "count": _count,
    "placed": _placed,
    "supported": _supported,
    "compared": _compared,
    "shaped": _shaped,
    "doing": _doing,
    "figure": _figure,
    "face": _face,
    "cat": _cat,
    "hand": _hand,
    "absence": _absence,
    "house": _house,
    "car": _car,
    "boat": _boat,
    "flower": _flower,
}
