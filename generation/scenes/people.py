"""Stick figures with poses, faces, a cat and a hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from generation.scenes.canvas import Box, Canvas, Colour, Point, outline_of, ring, shade

if TYPE_CHECKING:
    from collections.abc import Mapping

    from generation.scenes.dice import Dice

SKIN: tuple[Colour, ...] = ((250, 214, 184), (232, 184, 144), (196, 140, 100), (142, 96, 66))
HAIR: tuple[Colour, ...] = ((60, 44, 38), (112, 70, 40), (206, 158, 84), (150, 70, 44))
TROUSERS: tuple[Colour, ...] = ((70, 82, 112), (96, 88, 80), (60, 96, 104))
SHOES: Colour = (54, 50, 52)
INK: Colour = (48, 44, 46)

# Shares of the standing height.
TORSO, UPPER_ARM, FOREARM, THIGH, SHIN, HEAD = 0.29, 0.15, 0.15, 0.22, 0.22, 0.085

Limb = tuple[float, float]  # angles of its two segments from straight down, to the right positive


@dataclass(frozen=True)
class Pose:
    """Angles of a figure in degrees; ``lift`` raises it off the ground, in heights."""

    arms: tuple[Limb, Limb] = ((-14, -8), (14, 8))
    legs: tuple[Limb, Limb] = ((-7, -4), (7, 4))
    lean: float = 0.0
    lift: float = 0.0


@dataclass(frozen=True)
class Look:
    """What a person looks like: fixed for a scene, whatever the pose."""

    kind: str
    shirt: Colour
    skin: Colour
    hair: Colour
    trousers: Colour
    long_hair: bool = False

    @property
    def child(self) -> bool:
        """Children have larger heads and are smaller."""
        return self.kind in ("boy", "girl", "child")


def look_of(kind: str, shirt: Colour, dice: Dice) -> Look:
    """A person of a kind with skin, hair and trousers from ``dice``."""
    skin, hair, trousers = dice.choice(SKIN), dice.choice(HAIR), dice.choice(TROUSERS)
    return Look(kind, shirt, skin, hair, trousers, long_hair=kind in ("woman", "girl"))


@dataclass
class Body:
    """The joints of a posed figure in picture coordinates."""

    height: float
    hip: Point = (0.0, 0.0)
    neck: Point = (0.0, 0.0)
    head: Point = (0.0, 0.0)
    hands: list[Point] = field(default_factory=list)
    feet: list[Point] = field(default_factory=list)
    limbs: list[list[Point]] = field(default_factory=list)
    up: Point = (0.0, -1.0)


def pose_body(pose: Pose, cx: float, ground: float, height: float) -> Body:
    """Place a figure so that its lowest point stands on ``ground`` (or ``lift`` above it)."""
    body = _joints(pose, height)
    everything = [body.hip, body.neck, body.head, *(p for limb in body.limbs for p in limb)]
    lowest = max(y for _, y in everything) + 0.02 * height
    left, right = min(x for x, _ in everything), max(x for x, _ in everything)
    dx, dy = cx - (left + right) / 2, ground - lowest - pose.lift * height
    return Body(
        height,
        hip=_moved(body.hip, dx, dy),
        neck=_moved(body.neck, dx, dy),
        head=_moved(body.head, dx, dy),
        hands=[_moved(p, dx, dy) for p in body.hands],
        feet=[_moved(p, dx, dy) for p in body.feet],
        limbs=[[_moved(p, dx, dy) for p in limb] for limb in body.limbs],
        up=body.up,
    )


def draw_body(c: Canvas, body: Body, look: Look, *, eyes_closed: bool = False) -> None:
    """Draw a posed figure."""
    h = body.height
    left_arm, right_arm, left_leg, right_leg = body.limbs
    for leg in (left_leg, right_leg):
        c.line(leg, look.trousers, 0.062 * h)
        c.disc(*leg[-1], 0.036 * h, SHOES)
    c.line(left_arm, shade(look.shirt, 0.82), 0.05 * h)
    c.line([body.hip, body.neck], outline_of(look.shirt), 0.152 * h)
    c.line([body.hip, body.neck], look.shirt, 0.14 * h)
    c.line(right_arm, shade(look.shirt, 0.82), 0.05 * h)
    for hand in body.hands:
        c.disc(*hand, 0.034 * h, outline_of(look.skin))
        c.disc(*hand, 0.028 * h, look.skin)
    _draw_head(c, body, look, eyes_closed=eyes_closed)


def _draw_head(c: Canvas, body: Body, look: Look, *, eyes_closed: bool) -> None:
    radius = body.height * HEAD * (1.25 if look.child else 1.0)
    (x, y), (ux, uy) = body.head, body.up
    sx, sy = -uy, ux  # to the right of the head
    if look.long_hair:
        for side in (-0.75, 0.75):
            start = (x + side * sx * radius + ux * radius * 0.2, y + side * sy * radius)
            end = (start[0] - ux * radius * 1.25, start[1] - uy * radius * 1.25)
            c.line([start, end], look.hair, 0.55 * radius)
    c.disc(x + ux * 0.18 * radius, y + uy * 0.18 * radius, radius * 1.04, look.hair)
    c.disc(x - ux * 0.16 * radius, y - uy * 0.16 * radius, radius * 0.88, look.skin)
    for side in (-0.36, 0.36):
        eye = (x + side * sx * radius, y + side * sy * radius)
        if eyes_closed:
            half = (sx * 0.15 * radius, sy * 0.15 * radius)
            c.line(
                [(eye[0] - half[0], eye[1] - half[1]), (eye[0] + half[0], eye[1] + half[1])],
                INK,
                0.05 * radius,
            )
        else:
            c.disc(*eye, 0.1 * radius, INK)
    mouth = [
        (x + s * sx * radius - ux * d * radius, y + s * sy * radius - uy * d * radius)
        for s, d in ((-0.26, 0.42), (0.0, 0.54), (0.26, 0.42))
    ]
    c.line(mouth, (168, 74, 66), 0.1 * radius)


def _joints(pose: Pose, h: float) -> Body:
    lean = math.radians(pose.lean)
    up = (math.sin(lean), -math.cos(lean))
    hip = (0.0, 0.0)
    neck = _along(hip, up, TORSO * h)
    shoulders = [
        _moved(_along(neck, up, -0.03 * h), s * 0.07 * h * -up[1], s * 0.07 * h * up[0])
        for s in (-1, 1)
    ]
    hips = [_moved(hip, s * 0.035 * h * -up[1], s * 0.035 * h * up[0]) for s in (-1, 1)]
    arms = [
        _limb(s, a, (UPPER_ARM * h, FOREARM * h)) for s, a in zip(shoulders, pose.arms, strict=True)
    ]
    legs = [_limb(s, a, (THIGH * h, SHIN * h)) for s, a in zip(hips, pose.legs, strict=True)]
    head = _along(neck, up, (HEAD + 0.055) * h)
    return Body(
        h, hip, neck, head, [a[-1] for a in arms], [leg[-1] for leg in legs], [*arms, *legs], up
    )


def _limb(start: Point, angles: Limb, lengths: tuple[float, float]) -> list[Point]:
    points = [start]
    for angle, length in zip(angles, lengths, strict=True):
        x, y = points[-1]
        points.append(
            (x + length * math.sin(math.radians(angle)), y + length * math.cos(math.radians(angle)))
        )
    return points


def _along(point: Point, direction: Point, length: float) -> Point:
    return point[0] + direction[0] * length, point[1] + direction[1] * length


def _moved(point: Point, dx: float, dy: float) -> Point:
    return point[0] + dx, point[1] + dy


def draw_face(c: Canvas, look: Look, state: Mapping[str, str], b: Box) -> None:
    """A portrait: ``state`` may set eyes, mouth, hair (long, short), hat and glasses (yes)."""
    long_hair = state.get("hair", "long" if look.long_hair else "short") == "long"
    edge = outline_of(look.skin)
    if long_hair:
        c.rect(b.part(0.5, 0.56, 0.86, 0.84), look.hair, outline_of(look.hair), 0.3 * b.w)
    c.rect(b.part(0.5, 0.84, 0.26, 0.24), shade(look.skin, 0.92))
    c.pie(b.part(0.5, 1.18, 1.2, 0.6), 180, 360, look.shirt, outline_of(look.shirt))
    for x in (0.2, 0.8):
        if not long_hair:
            c.ellipse(b.part(x, 0.48, 0.12, 0.16), look.skin, edge)
    c.ellipse(b.part(0.5, 0.46, 0.6, 0.72), look.skin, edge)
    c.pie(b.part(0.5, 0.37, 0.64, 0.6), 190, 350, look.hair)
    _eyes(c, b, state.get("eyes", "open"))
    c.line([b.at(0.5, 0.48), b.at(0.47, 0.57), b.at(0.52, 0.58)], shade(look.skin, 0.75), 0.012)
    _mouth(c, b, state.get("mouth", "plain"))
    if state.get("glasses") == "yes":
        _glasses(c, b)
    if state.get("hat") == "yes":
        _hat(c, b, look.shirt)


def _eyes(c: Canvas, b: Box, eyes: str) -> None:
    for x in (0.38, 0.62):
        c.line([b.at(x - 0.07, 0.35), b.at(x + 0.07, 0.35)], INK, 0.014)
        if eyes == "closed" or (eyes == "one_closed" and x > 0.5):
            c.arc(b.part(x, 0.42, 0.15, 0.09), 10, 170, INK, 0.014)
            for dx in (-0.05, 0, 0.05):
                c.line([b.at(x + dx, 0.462), b.at(x + dx * 1.3, 0.492)], INK, 0.008)
        else:
            c.ellipse(b.part(x, 0.435, 0.15, 0.1), (255, 255, 255), INK)
            c.ellipse(b.part(x, 0.435, 0.07, 0.085), (86, 74, 60))
            c.ellipse(b.part(x, 0.435, 0.035, 0.042), INK)


def _mouth(c: Canvas, b: Box, mouth: str) -> None:
    lips = (180, 78, 74)
    if mouth == "open":
        c.ellipse(b.part(0.5, 0.69, 0.22, 0.17), (92, 30, 34), lips)
        c.ellipse(b.part(0.5, 0.735, 0.13, 0.06), (214, 106, 104))
    elif mouth == "closed":
        c.line([b.at(0.4, 0.68), b.at(0.6, 0.68)], lips, 0.018)
    else:
        c.arc(b.part(0.5, 0.63, 0.24, 0.14), 25, 155, lips, 0.016)


def _glasses(c: Canvas, b: Box) -> None:
    frame = (60, 50, 92)
    for x in (0.37, 0.63):
        for grow in (0.2, 0.19, 0.18):
            c.ellipse(b.part(x, 0.435, grow, grow * 0.78), None, frame)
    c.line([b.at(0.47, 0.42), b.at(0.53, 0.42)], frame, 0.014)
    for near, far in ((0.27, 0.21), (0.73, 0.79)):
        c.line([b.at(near, 0.42), b.at(far, 0.4)], frame, 0.014)


def _hat(c: Canvas, b: Box, colour: Colour) -> None:
    fill = shade(colour, 0.8)
    c.rect(b.part(0.5, 0.1, 0.56, 0.28), fill, outline_of(fill), 0.05)
    c.rect(b.part(0.5, 0.2, 0.565, 0.07), shade(fill, 0.55))
    c.ellipse(b.part(0.5, 0.25, 0.98, 0.1), fill, outline_of(fill))


def draw_cat(c: Canvas, b: Box, colour: Colour, tail: str) -> None:
    """A standing cat that looks to the right, its tail up or down."""
    edge = outline_of(colour)
    rump = b.at(0.2, 0.5)
    if tail == "up":
        points = [rump, b.at(0.1, 0.34), b.at(0.09, 0.16), b.at(0.15, 0.0)]
    else:
        points = [rump, b.at(0.09, 0.58), b.at(0.05, 0.74), b.at(0.07, 0.9)]
    c.line(points, edge, 0.076 * b.w)
    c.line(points, colour, 0.06 * b.w)
    for x in (0.27, 0.36, 0.6, 0.69):
        c.line([b.at(x, 0.65), b.at(x, 0.97)], edge, 0.082 * b.w)
        c.line([b.at(x, 0.6), b.at(x, 0.97)], colour, 0.066 * b.w)
    c.ellipse(b.part(0.47, 0.56, 0.62, 0.36), colour, edge)
    for x in (0.7, 0.86):
        c.polygon([b.at(x - 0.06, 0.28), b.at(x, 0.1), b.at(x + 0.06, 0.28)], colour, edge)
    c.ellipse(b.part(0.78, 0.38, 0.32, 0.3), colour, edge)
    for x in (0.72, 0.84):
        c.ellipse(b.part(x, 0.35, 0.06, 0.06), (250, 250, 220))
        c.ellipse(b.part(x, 0.35, 0.025, 0.05), INK)
    c.polygon([b.at(0.76, 0.42), b.at(0.8, 0.42), b.at(0.78, 0.45)], (220, 120, 120))
    for y in (0.43, 0.46):
        c.line([b.at(0.7, y), b.at(0.58, y - 0.01)], edge, 0.005)
        c.line([b.at(0.86, y), b.at(0.98, y - 0.01)], edge, 0.005)


def draw_hand(c: Canvas, b: Box, skin: Colour, fingers: int) -> None:
    """A hand, palm to the viewer, with one to five fingers raised (the fifth is the thumb)."""
    edge = outline_of(skin)
    width = 0.13 * b.w
    c.line([b.at(0.5, 0.86), b.at(0.5, 1.2)], edge, 0.32 * b.w)
    c.line([b.at(0.5, 0.86), b.at(0.5, 1.2)], skin, 0.30 * b.w)
    raised = list(zip((0.34, 0.46, 0.58, 0.7), (0.12, 0.05, 0.1, 0.2), strict=True))
    for i, (x, top) in enumerate(raised):
        # The folded fingers are short knuckles.
        tip = top if i < fingers else 0.46
        spread = (x - 0.52) * (0.35 if i < fingers else 0.0)
        points = [b.at(x, 0.62), b.at(x + spread, tip)]
        c.line(points, edge, width + 0.014)
        c.line(points, skin, width)
    c.rect(b.part(0.52, 0.72, 0.54, 0.42), skin, edge, 0.1 * b.w)
    for i, (x, top) in enumerate(raised):
        if i < fingers:
            c.line([b.at(x, 0.62), b.at(x, 0.55)], skin, width)
        else:
            c.ellipse(b.part(x, 0.53, 0.12, 0.16), shade(skin, 0.93), edge)
        del top
    thumb = (
        [b.at(0.32, 0.8), b.at(0.1, 0.54)] if fingers == 5 else [b.at(0.32, 0.78), b.at(0.5, 0.7)]
    )
    c.line(thumb, edge, width + 0.014)
    c.line(thumb, skin, width)


def ladder(c: Canvas, bottom: Point, top: Point, width: float, colour: Colour) -> None:
    """A ladder between two points."""
    (x0, y0), (x1, y1) = bottom, top
    length = math.hypot(x1 - x0, y1 - y0)
    nx, ny = -(y1 - y0) / length * width / 2, (x1 - x0) / length * width / 2
    for side in (-1, 1):
        c.line([(x0 + side * nx, y0 + side * ny), (x1 + side * nx, y1 + side * ny)], colour, 0.014)
    steps = max(3, int(length / 0.07))
    for i in range(1, steps):
        x, y = x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps
        c.line([(x - nx, y - ny), (x + nx, y + ny)], colour, 0.011)


def sun(c: Canvas, x: float, y: float, radius: float) -> None:
    """A sun with rays."""
    for px, py in ring(x, y, radius * 1.6, 12):
        c.line([(x, y), (px, py)], (250, 214, 110), 0.008)
    c.disc(x, y, radius * 1.12, (250, 214, 110))
    c.disc(x, y, radius, (252, 196, 70))
