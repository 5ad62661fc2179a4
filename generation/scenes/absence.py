"""Scenes in which a thing is there or not: one drawer a thing, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from generation.scenes.canvas import Box, Canvas, Colour, outline_of, shade
from generation.scenes.people import draw_face, look_of
from generation.scenes.scenery import SKIES, WALLS, cloud, draw_setting
from generation.scenes.things import WOOD, boat, candle, car, fish, flower, house, tree, vase
from generation.scenes.words import COLOURS

if TYPE_CHECKING:
    from generation.scenes.dice import Dice

BARE = ("red", "blue", "purple", "orange")


class Owner(Protocol):
    """Draws the owner with the thing present or absent."""

    def __call__(self, c: Canvas, dice: Dice, *, present: bool) -> None:
        """Draw it."""


def _vase(c: Canvas, dice: Dice, *, present: bool) -> None:
    draw_setting(c, "in a room", dice)
    cx, colour, edge = dice.between(0.45, 0.55), COLOURS[dice.choice(BARE)], outline_of(WOOD)
    for x in (cx - 0.3, cx + 0.3):
        c.rect(Box(x, 0.76, 0.04, 0.36), shade(WOOD, 0.85), edge)
    c.rect(Box(cx, 0.57, 0.74, 0.05), WOOD, edge, 0.01)
    if present:
        x = cx + dice.between(-0.16, 0.16)
        flower(c, Box(x, 0.26, 0.14, 0.24), COLOURS["pink"])
        vase(c, Box(x, 0.445, 0.15, 0.2), colour)


def _clouds(c: Canvas, dice: Dice, *, present: bool) -> None:
    c.gradient(*dice.choice(((SKIES[0]), (SKIES[2]))))
    c.gradient((150, 190, 120), (128, 170, 104), dice.between(0.8, 0.86), 1.0)
    if present:
        for x in (0.2, 0.5, 0.82):
            cloud(
                c, x + dice.between(-0.05, 0.05), dice.between(0.16, 0.55), dice.between(0.13, 0.19)
            )


def _big_tree(c: Canvas, dice: Dice) -> Box:
    draw_setting(c, "on a lawn", dice, horizon=0.74)
    return Box(0.5 + dice.between(-0.08, 0.08), 0.49, 0.62, 0.8)


def _apples(c: Canvas, dice: Dice, *, present: bool) -> None:
    b = _big_tree(c, dice)
    tree(c, b, COLOURS["green"])
    spots = (
        (0.25, 0.4),
        (0.5, 0.18),
        (0.72, 0.38),
        (0.4, 0.55),
        (0.62, 0.56),
        (0.5, 0.36),
        (0.3, 0.22),
    )
    if present:
        for x, y in dice.shuffled(spots)[:6]:
            c.disc(*b.at(x, y), 0.03, outline_of(COLOURS["red"]))
            c.disc(*b.at(x, y), 0.025, COLOURS["red"])


def _leaves(c: Canvas, dice: Dice, *, present: bool) -> None:
    b = _big_tree(c, dice)
    if present:
        tree(c, b, dice.choice((COLOURS["green"], (116, 170, 80))))
        return
    c.line([b.at(0.5, 1), b.at(0.5, 0.45)], WOOD, 0.06)
    for x, y, forks in ((0.2, 0.2, -1), (0.8, 0.22, 1), (0.42, 0.06, -1), (0.62, 0.1, 1)):
        c.line([b.at(0.5, 0.6), b.at((x + 0.5) / 2, 0.42), b.at(x, y)], WOOD, 0.024)
        c.line([b.at((x + 0.5) / 2, 0.42), b.at(x + forks * 0.14, y + 0.16)], WOOD, 0.014)


def _picture(c: Canvas, dice: Dice, *, present: bool) -> None:
    c.gradient(wall := dice.choice(WALLS), shade(wall, 0.95))
    c.rect(Box(0.5, 0.95, 1.1, 0.16), (200, 168, 130), outline_of((200, 168, 130)))
    c.rect(Box(0.5, 0.86, 1.1, 0.03), (252, 250, 246), outline_of(wall))
    if present:
        frame = Box(0.5 + dice.between(-0.12, 0.12), 0.42, 0.42, 0.34)
        c.rect(frame, (176, 130, 74), outline_of((176, 130, 74)))
        view = frame.part(0.5, 0.5, 0.82, 0.78)
        c.rect(view, (160, 206, 232))
        c.polygon(
            [
                view.at(0, 1),
                view.at(0.35, 0.35),
                view.at(0.62, 0.75),
                view.at(0.8, 0.5),
                view.at(1, 1),
            ],
            (96, 146, 104),
        )
        c.disc(*view.at(0.78, 0.22), 0.025, (250, 210, 90))


def _portrait(c: Canvas, dice: Dice, kind: str, state: dict[str, str]) -> None:
    draw_setting(c, "", dice)
    look = look_of(kind, COLOURS[dice.choice(("blue", "green", "purple", "red"))], dice)
    size = dice.between(0.64, 0.7)
    draw_face(c, look, state, Box(0.5 + dice.between(-0.05, 0.05), 0.6, size, size))


def _hat(c: Canvas, dice: Dice, *, present: bool) -> None:
    _portrait(c, dice, "man", {"hat": "yes" if present else "no"})


def _glasses(c: Canvas, dice: Dice, *, present: bool) -> None:
    _portrait(c, dice, "woman", {"glasses": "yes" if present else "no"})


def _car(c: Canvas, dice: Dice, *, present: bool) -> None:
    c.gradient(*dice.choice(SKIES), 0.0, 0.6)
    for x in (0.15, 0.5, 0.85):
        wall: Colour = dice.choice(((226, 200, 170), (208, 186, 180), (220, 214, 190)))
        house(c, Box(x, 0.4, 0.36, 0.42), wall)
    c.rect(Box(0.5, 0.66, 1.1, 0.1), (206, 202, 194))
    c.rect(Box(0.5, 0.86, 1.1, 0.32), (120, 122, 128))
    for i in range(5):
        c.rect(Box(0.1 + 0.22 * i, 0.9, 0.1, 0.016), (240, 238, 228))
    if present:
        car(c, Box(dice.between(0.35, 0.65), 0.74, 0.42, 0.23), COLOURS[dice.choice(BARE)])


def _boat(c: Canvas, dice: Dice, *, present: bool) -> None:
    c.gradient(*dice.choice(SKIES), 0.0, 0.5)
    for x in (0.15, 0.6, 0.95):
        c.polygon([(x - 0.3, 0.5), (x, dice.between(0.25, 0.36)), (x + 0.3, 0.5)], (146, 176, 150))
    c.gradient((108, 172, 198), (70, 134, 170), 0.5, 1.0)
    for _ in range(14):
        x, y = dice.between(0.05, 0.9), dice.between(0.56, 0.96)
        c.line([(x, y), (x + 0.05, y)], (150, 200, 216), 0.004)
    if present:
        boat(
            c,
            Box(dice.between(0.3, 0.7), 0.6, 0.3, 0.32),
            COLOURS[dice.choice(("red", "brown", "orange"))],
        )


def _chimney(c: Canvas, dice: Dice, *, present: bool) -> None:
    draw_setting(c, "in a field", dice, horizon=0.7)
    size = dice.between(0.6, 0.66)
    wall: Colour = dice.choice(((244, 226, 196), (226, 214, 206), (206, 222, 226)))
    house(
        c, Box(0.5 + dice.between(-0.08, 0.08), 0.88 - size / 2, size, size), wall, chimney=present
    )


def _candles(c: Canvas, dice: Dice, *, present: bool) -> None:
    draw_setting(c, "on a table", dice)
    colour: Colour = dice.choice(((236, 168, 186), (130, 84, 60), (246, 226, 180)))
    cx = dice.between(0.45, 0.55)
    if present:
        for i in range(4):
            candle(c, Box(cx - 0.18 + 0.12 * i, 0.4, 0.05, 0.2), COLOURS[BARE[i]])
    c.rect(Box(cx, 0.76, 0.66, 0.03), (236, 236, 232), (190, 190, 186), 0.01)
    c.rect(Box(cx, 0.62, 0.52, 0.26), colour, outline_of(colour), 0.02)
    c.rect(Box(cx, 0.515, 0.52, 0.06), shade(colour, 1.5), outline_of(colour), 0.02)


def _fish(c: Canvas, dice: Dice, *, present: bool) -> None:
    draw_setting(c, "on a table", dice)
    tank = Box(0.5, 0.54, 0.7, 0.5)
    c.rect(tank, (226, 240, 246), (150, 170, 182))
    c.rect(tank.part(0.5, 0.56, 0.97, 0.84), (150, 204, 224))
    c.rect(tank.part(0.5, 0.93, 0.97, 0.1), (206, 188, 150))
    for x in (0.15, 0.85):
        c.line(
            [tank.at(x, 0.9), tank.at(x + 0.02, 0.6), tank.at(x - 0.01, 0.4)], (84, 150, 96), 0.016
        )
    if present:
        for x, y in ((0.36, 0.42), (0.62, 0.66)):
            colour = COLOURS[dice.choice(("orange", "red", "yellow"))]
            fish(c, tank.part(x + dice.between(-0.06, 0.06), y, 0.24, 0.22), colour)


OWNERS: dict[str, Owner] = {
    "vase": _vase,
    "clouds": _clouds,
    "apples": _apples,
    "picture": _picture,
    "hat": _hat,
    "glasses": _glasses,
    "car": _car,
    "boat": _boat,
    "chimney": _chimney,
    "candles": _candles,
    "leaves": _leaves,
    "fish": _fish,
}
