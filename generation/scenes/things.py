"""How each thing is drawn: one function a thing, filling its box."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from generation.scenes.canvas import Box, Canvas, Colour, outline_of, ring, shade

if TYPE_CHECKING:
    from collections.abc import Callable

WOOD: Colour = (156, 112, 72)
LEAF: Colour = (82, 150, 84)
DARK: Colour = (52, 54, 62)
GLASS: Colour = (186, 216, 232)
PAPER: Colour = (250, 248, 240)
RUBBER: Colour = (60, 62, 70)

# Width to height of each thing as it looks natural.
ASPECT = {"fish": 1.5, "book": 0.8, "vase": 0.62, "tree": 0.75, "bird": 1.25, "boat": 1.1,
          "candle": 0.4, "car": 1.8, "balloon": 0.72, "flower": 0.7, "cup": 1.1}  # fmt: skip


def circle(c: Canvas, b: Box, colour: Colour) -> None:
    """A disc with a contour."""
    c.ellipse(b, colour, outline_of(colour))


def square(c: Canvas, b: Box, colour: Colour) -> None:
    """A square."""
    c.rect(b, colour, outline_of(colour))


def triangle(c: Canvas, b: Box, colour: Colour) -> None:
    """A triangle on its base."""
    c.polygon([b.at(0.5, 0), b.at(1, 1), b.at(0, 1)], colour, outline_of(colour))


def star(c: Canvas, b: Box, colour: Colour) -> None:
    """A star with five points."""
    outer, inner = ring(0.5, 0.53, 0.53, 5), ring(0.5, 0.53, 0.22, 5, -54)
    points = [b.at(*p) for pair in zip(outer, inner, strict=True) for p in pair]
    c.polygon(points, colour, outline_of(colour))


def heart(c: Canvas, b: Box, colour: Colour) -> None:
    """A heart, from its well-known curve."""
    points = []
    for i in range(72):
        t = math.tau * i / 72
        x = 16 * math.sin(t) ** 3
        y = 13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)
        points.append(b.at(0.5 + x / 34, 0.45 - y / 30))
    c.polygon(points, colour, outline_of(colour))


def hexagon(c: Canvas, b: Box, colour: Colour) -> None:
    """A regular hexagon."""
    c.polygon([b.at(*p) for p in ring(0.5, 0.5, 0.53, 6)], colour, outline_of(colour))


def diamond(c: Canvas, b: Box, colour: Colour) -> None:
    """A square on its corner."""
    points = [b.at(0.5, 0), b.at(0.9, 0.5), b.at(0.5, 1), b.at(0.1, 0.5)]
    c.polygon(points, colour, outline_of(colour))


def ball(c: Canvas, b: Box, colour: Colour) -> None:
    """A ball with a light spot and a seam."""
    c.ellipse(b, colour, outline_of(colour))
    c.arc(b.part(0.15, 0.5, 0.9, 0.95), -50, 50, shade(colour, 0.8), 0.03 * b.w)
    c.ellipse(b.part(0.34, 0.28, 0.2, 0.16), shade(colour, 1.55))


def apple(c: Canvas, b: Box, colour: Colour) -> None:
    """An apple with stalk and leaf."""
    edge = outline_of(colour)
    c.ellipse(b.part(0.34, 0.6, 0.64, 0.78), edge)
    c.ellipse(b.part(0.66, 0.6, 0.64, 0.78), edge)
    c.ellipse(b.part(0.36, 0.6, 0.61, 0.73), colour)
    c.ellipse(b.part(0.64, 0.6, 0.61, 0.73), colour)
    c.ellipse(b.part(0.3, 0.45, 0.14, 0.16), shade(colour, 1.5))
    c.line([b.at(0.5, 0.3), b.at(0.54, 0.06)], shade(WOOD, 0.7), 0.06 * b.w)
    c.ellipse(b.part(0.68, 0.12, 0.3, 0.14), LEAF)


def balloon(c: Canvas, b: Box, colour: Colour) -> None:
    """A balloon with its string."""
    c.line([b.at(0.5, 0.72), b.at(0.45, 0.82), b.at(0.55, 0.91), b.at(0.5, 1)], DARK, 0.006)
    c.polygon([b.at(0.5, 0.68), b.at(0.58, 0.76), b.at(0.42, 0.76)], shade(colour, 0.8))
    c.ellipse(b.part(0.5, 0.36, 0.94, 0.72), colour, outline_of(colour))
    c.ellipse(b.part(0.34, 0.2, 0.16, 0.13), shade(colour, 1.5))


def flower(c: Canvas, b: Box, colour: Colour, petals: int = 6) -> None:
    """A flower on its stalk with a number of petals."""
    c.line([b.at(0.5, 0.4), b.at(0.5, 1)], LEAF, 0.07 * b.w)
    c.ellipse(b.part(0.68, 0.78, 0.36, 0.1), LEAF)
    centre, reach = b.at(0.5, 0.34), 0.29 * b.w
    size = min(0.36, 1.55 / petals) * b.w
    for x, y in ring(*centre, reach, petals):
        c.ellipse(Box(x, y, size, size), colour, outline_of(colour))
    heart_colour = (246, 205, 70) if colour != (246, 205, 70) else (150, 96, 50)
    c.ellipse(Box(*centre, 0.34 * b.w, 0.34 * b.w), heart_colour, outline_of(heart_colour))


def fish(c: Canvas, b: Box, colour: Colour) -> None:
    """A fish that swims to the right."""
    edge = outline_of(colour)
    c.polygon(
        [b.at(0.28, 0.5), b.at(0, 0.14), b.at(0.06, 0.5), b.at(0, 0.86)], shade(colour, 0.85), edge
    )
    c.polygon([b.at(0.45, 0.2), b.at(0.6, 0), b.at(0.7, 0.22)], shade(colour, 0.85))
    c.ellipse(b.part(0.6, 0.5, 0.8, 0.68), colour, edge)
    c.ellipse(b.part(0.82, 0.42, 0.09, 0.135), PAPER)
    c.ellipse(b.part(0.83, 0.42, 0.05, 0.075), DARK)
    c.arc(b.part(0.55, 0.5, 0.2, 0.5), -60, 60, edge, 0.012)


def cup(c: Canvas, b: Box, colour: Colour) -> None:
    """A cup with its handle at the right."""
    edge = outline_of(colour)
    c.arc(b.part(0.78, 0.5, 0.4, 0.5), 0, 360, edge, 0.09 * b.w)
    c.polygon([b.at(0.02, 0.12), b.at(0.8, 0.12), b.at(0.68, 1), b.at(0.14, 1)], colour, edge)
    c.ellipse(b.part(0.41, 0.13, 0.78, 0.2), shade(colour, 0.55), edge)


def book(c: Canvas, b: Box, colour: Colour) -> None:
    """A closed book, seen from the front."""
    c.rect(b.part(0.54, 0.53, 0.92, 0.94), PAPER, outline_of(PAPER))
    c.rect(b.part(0.47, 0.47, 0.94, 0.94), colour, outline_of(colour), 0.01)
    c.line([b.at(0.12, 0.02), b.at(0.12, 0.92)], outline_of(colour), 0.008)
    c.rect(b.part(0.55, 0.28, 0.5, 0.16), shade(colour, 1.6))


def vase(c: Canvas, b: Box, colour: Colour) -> None:
    """A bellied vase."""
    points = [(0.3, 0), (0.7, 0), (0.64, 0.2), (0.92, 0.48), (0.96, 0.68), (0.7, 1), (0.3, 1),
              (0.04, 0.68), (0.08, 0.48), (0.36, 0.2)]  # fmt: skip
    c.polygon([b.at(*p) for p in points], colour, outline_of(colour))
    c.line([b.at(0.1, 0.58), b.at(0.9, 0.58)], shade(colour, 1.5), 0.03 * b.h)


def tree(c: Canvas, b: Box, colour: Colour) -> None:
    """A tree with a round crown."""
    c.rect(b.part(0.5, 0.77, 0.16, 0.46), WOOD, outline_of(WOOD))
    edge = outline_of(colour)
    for x, y, size in ((0.26, 0.46, 0.52), (0.74, 0.46, 0.52), (0.5, 0.27, 0.72)):
        c.ellipse(b.part(x, y, size, size * b.w / b.h), colour, edge)
    c.ellipse(b.part(0.5, 0.43, 0.74, 0.36), colour)


def bird(c: Canvas, b: Box, colour: Colour) -> None:
    """A small bird that looks to the right."""
    edge = outline_of(colour)
    for x in (0.46, 0.58):
        c.line([b.at(x, 0.8), b.at(x, 1)], DARK, 0.006)
    c.polygon(
        [b.at(0.2, 0.52), b.at(0, 0.3), b.at(0.04, 0.62), b.at(0.24, 0.72)],
        shade(colour, 0.8),
        edge,
    )
    c.ellipse(b.part(0.48, 0.58, 0.7, 0.58), colour, edge)
    c.polygon([b.at(0.92, 0.26), b.at(1.06, 0.34), b.at(0.92, 0.4)], (240, 160, 60))
    c.ellipse(b.part(0.78, 0.3, 0.36, 0.46), colour, edge)
    c.ellipse(b.part(0.42, 0.58, 0.4, 0.28), shade(colour, 0.78))
    c.ellipse(b.part(0.83, 0.26, 0.06, 0.075), PAPER)
    c.ellipse(b.part(0.84, 0.26, 0.035, 0.045), DARK)


def boat(c: Canvas, b: Box, colour: Colour, sails: tuple[Colour, ...] = (PAPER,)) -> None:
    """A sailing boat with one to three sails."""
    c.line([b.at(0.5, 0.04), b.at(0.5, 0.75)], WOOD, 0.03 * b.w)
    shapes = {
        1: [[(0.53, 0.06), (0.94, 0.68), (0.53, 0.68)]],
        2: [[(0.53, 0.06), (0.94, 0.68), (0.53, 0.68)], [(0.47, 0.14), (0.47, 0.68), (0.12, 0.68)]],
        3: [[(0.53, 0.4), (0.94, 0.7), (0.53, 0.7)], [(0.47, 0.14), (0.47, 0.68), (0.12, 0.68)],
            [(0.53, 0.04), (0.82, 0.36), (0.53, 0.36)]],
    }  # fmt: skip
    for sail, points in zip(sails, shapes[len(sails)], strict=True):
        c.polygon([b.at(*p) for p in points], sail, outline_of(sail))
    hull = [b.at(0, 0.75), b.at(1, 0.75), b.at(0.82, 1), b.at(0.18, 1)]
    c.polygon(hull, colour, outline_of(colour))


def box(c: Canvas, b: Box, colour: Colour) -> None:
    """A closed box with a strip of tape."""
    c.rect(b, colour, outline_of(colour))
    c.rect(b.part(0.5, 0.12, 1, 0.24), shade(colour, 0.85), outline_of(colour))
    c.rect(b.part(0.5, 0.5, 0.14, 0.98), shade(colour, 1.35))


def candle(c: Canvas, b: Box, colour: Colour) -> None:
    """A burning candle."""
    c.line([b.at(0.5, 0.26), b.at(0.5, 0.36)], DARK, 0.008)
    c.ellipse(b.part(0.5, 0.15, 0.46, 0.26), (250, 190, 70))
    c.ellipse(b.part(0.5, 0.19, 0.22, 0.14), (255, 240, 170))
    c.rect(b.part(0.5, 0.67, 0.8, 0.66), colour, outline_of(colour), 0.006)


def car(c: Canvas, b: Box, colour: Colour, *, wheels: Colour = RUBBER, lid: str = "") -> None:
    """A car that drives to the right; one lid (trunk, hood or door) may be open."""
    edge = outline_of(colour)
    _lid(c, b, colour, lid)
    cabin = [b.at(0.2, 0.42), b.at(0.32, 0.08), b.at(0.62, 0.08), b.at(0.76, 0.42)]
    c.polygon(cabin, colour, edge)
    c.polygon([b.at(0.27, 0.4), b.at(0.355, 0.15), b.at(0.46, 0.15), b.at(0.46, 0.4)], GLASS)
    c.polygon([b.at(0.5, 0.4), b.at(0.5, 0.15), b.at(0.595, 0.15), b.at(0.69, 0.4)], GLASS)
    c.rect(b.part(0.5, 0.6, 1, 0.4), colour, edge, 0.12 * b.h)
    c.ellipse(b.part(0.96, 0.54, 0.06, 0.12), (255, 240, 170))
    if lid == "door":
        _open_door(c, b, colour)
    else:
        c.line([b.at(0.48, 0.42), b.at(0.48, 0.76)], edge, 0.006)
    for x in (0.22, 0.78):
        hub = b.part(x, 0.8, 0.4 * b.h / b.w, 0.4)
        c.ellipse(hub, wheels, outline_of(wheels))
        c.ellipse(hub.part(0.5, 0.5, 0.4, 0.4), (205, 208, 212), outline_of((205, 208, 212)))


def _lid(c: Canvas, b: Box, colour: Colour, lid: str) -> None:
    if lid == "trunk":
        points = [b.at(0.2, 0.42), b.at(0.02, 0.02), b.at(0.08, -0.02), b.at(0.26, 0.4)]
        c.polygon(points, colour, outline_of(colour))
        c.rect(b.part(0.11, 0.44, 0.18, 0.1), DARK)
    if lid == "hood":
        points = [b.at(0.76, 0.44), b.at(0.98, 0.04), b.at(0.92, 0.0), b.at(0.7, 0.4)]
        c.polygon(points, colour, outline_of(colour))
        c.rect(b.part(0.87, 0.44, 0.2, 0.1), DARK)


def _open_door(c: Canvas, b: Box, colour: Colour) -> None:
    hole = [b.at(0.49, 0.16), b.at(0.6, 0.16), b.at(0.7, 0.42), b.at(0.7, 0.76), b.at(0.49, 0.76)]
    c.polygon(hole, DARK)
    wing = [b.at(0.49, 0.16), b.at(0.36, 0.3), b.at(0.36, 0.94), b.at(0.49, 0.76)]
    c.polygon(wing, shade(colour, 1.12), outline_of(colour))
    c.polygon([b.at(0.475, 0.22), b.at(0.385, 0.33), b.at(0.385, 0.52), b.at(0.475, 0.46)], GLASS)


def mushroom(c: Canvas, b: Box, colour: Colour) -> None:
    """A mushroom with a spotted cap."""
    c.rect(b.part(0.5, 0.74, 0.34, 0.52), PAPER, outline_of(PAPER), 0.05 * b.w)
    c.pie(b.part(0.5, 0.5, 1, 1), 180, 360, colour, outline_of(colour))
    for x, y, size in ((0.3, 0.34, 0.12), (0.52, 0.18, 0.14), (0.72, 0.36, 0.12)):
        c.ellipse(b.part(x, y, size, size), shade(colour, 1.8))


def house(
    c: Canvas,
    b: Box,
    colour: Colour,
    *,
    door: Colour = WOOD,
    door_open: bool = False,
    roof: str = "pointed",
    roof_colour: Colour = (176, 84, 66),
    windows: int = 2,
    chimney: bool = False,
) -> None:
    """A house with a door, windows and a roof."""
    if chimney:
        c.rect(b.part(0.74, 0.14, 0.12, 0.28), (168, 96, 80), outline_of((168, 96, 80)))
    _roof(c, b, roof, roof_colour)
    c.rect(b.part(0.5, 0.69, 0.84, 0.62), colour, outline_of(colour))
    _door(c, b, door, door_open=door_open)
    upper = [(x, 0.5) for x in {1: (0.5,), 2: (0.26, 0.74)}.get(windows, (0.2, 0.5, 0.8))]
    lower = [(0.23, 0.78), (0.77, 0.78)]
    spots = (upper + lower)[:windows] if windows > 3 else upper[:windows]
    if windows == 6:
        spots = [(0.2, 0.5), (0.4, 0.5), (0.6, 0.5), (0.8, 0.5), *lower]
    for x, y in spots:
        _pane(c, b.part(x, y, 0.15, 0.15))


def _roof(c: Canvas, b: Box, roof: str, colour: Colour) -> None:
    edge = outline_of(colour)
    if roof == "flat":
        c.rect(b.part(0.5, 0.36, 0.96, 0.07), colour, edge)
    elif roof == "domed":
        c.pie(b.part(0.5, 0.39, 0.9, 0.7), 180, 360, colour, edge)
    else:
        c.polygon([b.at(0.5, 0), b.at(1, 0.39), b.at(0, 0.39)], colour, edge)


def _door(c: Canvas, b: Box, colour: Colour, *, door_open: bool) -> None:
    frame = b.part(0.5, 0.84, 0.2, 0.32)
    if not door_open:
        c.rect(frame, colour, outline_of(colour))
        c.disc(*frame.at(0.8, 0.52), 0.06 * frame.w, (240, 205, 90))
        return
    c.rect(frame, (38, 34, 36), outline_of(DARK))
    wing = [frame.at(0, 0), frame.at(-0.62, 0.1), frame.at(-0.62, 1.08), frame.at(0, 1)]
    c.polygon(wing, colour, outline_of(colour))
    c.disc(*frame.at(-0.5, 0.58), 0.06 * frame.w, (240, 205, 90))


def _pane(c: Canvas, b: Box) -> None:
    c.rect(b, GLASS, (96, 88, 84))
    c.line([b.at(0.5, 0.02), b.at(0.5, 0.98)], (96, 88, 84), 0.006)
    c.line([b.at(0.02, 0.5), b.at(0.98, 0.5)], (96, 88, 84), 0.006)


DRAWERS: dict[str, Callable[[Canvas, Box, Colour], None]] = {
    "circle": circle,
    "square": square,
    "triangle": triangle,
    "star": star,
    "heart": heart,
    "hexagon": hexagon,
    "diamond": diamond,
    "ball": ball,
    "apple": apple,
    "balloon": balloon,
    "flower": flower,
    "fish": fish,
    "cup": cup,
    "book": book,
    "vase": vase,
    "tree": tree,
    "bird": bird,
    "boat": boat,
    "box": box,
    "candle": candle,
    "car": car,
    "house": house,
    "mushroom": mushroom,
}


def natural_box(thing: str, cx: float, cy: float, size: float) -> Box:
    """The box of a thing whose longer side is ``size``, in its natural proportions."""
    aspect = ASPECT.get(thing, 1.0)
    return Box(cx, cy, size * min(1.0, aspect), size / max(1.0, aspect))


def draw_thing(c: Canvas, thing: str, b: Box, colour: Colour) -> None:
    """Draw a thing by its name."""
    DRAWERS[thing](c, b, colour)
