"""Where a scene happens: backgrounds with the region that things may stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from generation.scenes.canvas import Box, Canvas, Colour, outline_of, shade
from generation.scenes.people import sun

if TYPE_CHECKING:
    from collections.abc import Callable

    from generation.scenes.dice import Dice

SKIES: tuple[tuple[Colour, Colour], ...] = (
    ((148, 196, 232), (220, 238, 246)),
    ((170, 206, 226), (246, 236, 218)),
    ((128, 182, 220), (206, 230, 240)),
)
GRASS: tuple[Colour, ...] = ((172, 206, 128), (160, 198, 122), (186, 210, 138))
WALLS: tuple[Colour, ...] = ((240, 230, 214), (224, 232, 232), (236, 226, 232), (230, 234, 216))
FLOORS: tuple[Colour, ...] = ((206, 172, 134), (190, 160, 140), (200, 180, 150))
PLAIN: tuple[tuple[Colour, Colour], ...] = (
    ((246, 242, 232), (232, 224, 208)),
    ((236, 242, 244), (214, 226, 232)),
    ((244, 236, 240), (230, 214, 222)),
    ((240, 242, 230), (222, 228, 204)),
)
WOODEN: tuple[Colour, ...] = ((196, 152, 108), (176, 132, 96), (208, 170, 124))


@dataclass(frozen=True)
class Setting:
    """Where things may be: the region for scattering, and the line that they stand on."""

    region: Box
    ground: float


def draw_setting(c: Canvas, place: str, dice: Dice, *, horizon: float | None = None) -> Setting:
    """Paint the background of a place; an unnamed place is a quiet plain one."""
    line = dice.between(0.52, 0.62) if horizon is None else horizon
    return _PAINTERS.get(place, _plain)(c, dice, line)


def _plain(c: Canvas, dice: Dice, line: float) -> Setting:
    del line
    c.gradient(*dice.choice(PLAIN))
    return Setting(Box(0.5, 0.5, 0.84, 0.84), 0.84)


def _plate(c: Canvas, dice: Dice, line: float) -> Setting:
    del line
    top, bottom = dice.choice(((122, 158, 168), (98, 136, 150))), (88, 122, 138)
    c.gradient(top, bottom) if dice.unit() < 0.5 else c.gradient((206, 164, 120), (190, 146, 104))
    c.ellipse(Box(0.5, 0.52, 0.97, 0.97), shade(bottom, 0.8))
    c.ellipse(Box(0.5, 0.5, 0.97, 0.97), (250, 249, 245), (216, 212, 204))
    c.ellipse(Box(0.5, 0.5, 0.75, 0.75), (255, 254, 250), (228, 224, 216))
    return Setting(Box(0.5, 0.5, 0.6, 0.6), 0.74)


def _table(c: Canvas, dice: Dice, line: float) -> Setting:
    del line
    c.gradient(wall := dice.choice(WALLS), shade(wall, 0.94))
    wood = dice.choice(WOODEN)
    c.rect(Box(0.5, 0.66, 1.2, 0.72), wood, outline_of(wood))
    for i in range(1, 5):
        y = 0.3 + i * 0.15
        c.line([(0, y), (1, y)], shade(wood, 0.93), 0.004)
    return Setting(Box(0.5, 0.64, 0.84, 0.56), 0.84)


def _lawn(c: Canvas, dice: Dice, line: float) -> Setting:
    _sky_above(c, dice, line)
    grass = dice.choice(GRASS)
    if line < 0.9:
        c.ellipse(Box(dice.between(0.1, 0.9), line, 1.1, 0.16), shade(grass, 0.94))
    c.gradient(grass, shade(grass, 0.9), line, 1.0)
    for _ in range(26):
        x, y = dice.between(0.02, 0.98), dice.between(line + 0.03, 0.97)
        c.line([(x, y), (x + 0.008, y - 0.018)], shade(grass, 0.84), 0.004)
    return _standing(line)


def _beach(c: Canvas, dice: Dice, line: float) -> Setting:
    _sky_above(c, dice, line)
    c.gradient((92, 164, 190), (128, 194, 206), line - 0.1, line + 0.01)
    c.gradient((242, 222, 170), (226, 200, 148), line, 1.0)
    for _ in range(30):
        c.disc(dice.between(0, 1), dice.between(line + 0.03, 1), 0.003, (206, 178, 126))
    return _standing(line)


def _snow(c: Canvas, dice: Dice, line: float) -> Setting:
    c.gradient((176, 198, 216), (226, 234, 240), 0.0, line)
    c.gradient((238, 243, 248), (220, 230, 240), line, 1.0)
    for _ in range(40):
        c.disc(dice.unit(), dice.unit(), dice.between(0.003, 0.006), (255, 255, 255))
    return _standing(line)


def _sky(c: Canvas, dice: Dice, line: float) -> Setting:
    del line
    c.gradient(*dice.choice(SKIES))
    return Setting(Box(0.5, 0.5, 0.86, 0.86), 0.84)


def _room(c: Canvas, dice: Dice, line: float) -> Setting:
    line = max(line, 0.34)
    wall, floor = dice.choice(WALLS), dice.choice(FLOORS)
    c.gradient(wall, shade(wall, 0.95), 0.0, line)
    c.gradient(floor, shade(floor, 0.92), line, 1.0)
    c.rect(Box(0.5, line - 0.01, 1.1, 0.025), (252, 250, 246), outline_of(wall))
    return _standing(line)


def _night(c: Canvas, dice: Dice, line: float) -> Setting:
    del dice
    c.gradient((30, 38, 72), (66, 78, 120), 0.0, line)
    c.gradient((70, 92, 96), (56, 76, 82), line, 1.0)
    return _standing(line)


def _sky_above(c: Canvas, dice: Dice, line: float) -> None:
    c.gradient(*dice.choice(SKIES), 0.0, line)
    if line > 0.4 and dice.unit() < 0.5:
        sun(c, dice.choice((0.1, 0.9)), 0.1, 0.045)


def _standing(line: float) -> Setting:
    height = 0.92 - line
    return Setting(Box(0.5, line + height / 2 + 0.02, 0.86, height), 0.88)


def cloud(c: Canvas, x: float, y: float, size: float) -> None:
    """A white cloud."""
    for dx, dy, r in ((-0.5, 0.06, 0.3), (-0.1, -0.12, 0.42), (0.35, 0.0, 0.36), (0.65, 0.12, 0.2)):
        c.disc(x + dx * size, y + dy * size, r * size, (255, 255, 255))
    c.rect(
        Box(x + 0.05 * size, y + 0.22 * size, 1.35 * size, 0.26 * size),
        (255, 255, 255),
        None,
        0.1 * size,
    )


def shadow(c: Canvas, b: Box, ground: Colour = (0, 0, 0)) -> None:
    """A flat shadow where a thing stands (a mixed tone: the canvas has no transparency)."""
    tone = shade(ground, 0.78)
    c.ellipse(Box(b.cx, b.bottom, b.w * 0.9, 0.035), tone)


_PAINTERS: dict[str, Callable[[Canvas, Dice, float], Setting]] = {
    "on a plate": _plate,
    "on a table": _table,
    "on a lawn": _lawn,
    "in a park": _lawn,
    "in a field": _lawn,
    "on a beach": _beach,
    "in the snow": _snow,
    "in the sky": _sky,
    "in a room": _room,
    "at night": _night,
}
