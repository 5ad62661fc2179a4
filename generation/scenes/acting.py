"""People at something: poses, the things that they use, and objects of many outlines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generation.scenes.canvas import Box, Canvas, Colour, outline_of, shade
from generation.scenes.people import Body, Look, Pose, draw_body, ladder, pose_body
from generation.scenes.things import PAPER, WOOD, ball, balloon, diamond
from generation.scenes.things import box as carton

if TYPE_CHECKING:
    from collections.abc import Callable

    from generation.scenes.dice import Dice

GROUND = 0.9
SEAT = 0.235  # height of a chair's seat, in heights of the person
CARTON: Colour = (196, 154, 108)
TOY: Colour = (240, 145, 52)

POSES: dict[str, Pose] = {
    "running": Pose(((-55, 25), (45, 135)), ((-28, -85), (58, 4)), lean=14),
    "jumping": Pose(((-150, -165), (150, 165)), ((-48, 22), (48, -22)), lift=0.16),
    "standing": Pose(),
    "waving": Pose(((-14, -8), (118, 172))),
    "kneeling": Pose(((18, 50), (24, 56)), ((0, -88), (4, -88)), lean=4),
    "lying": Pose(((84, 88), (96, 92)), ((86, 90), (94, 90)), lean=-90),
    "sitting": Pose(((20, 70), (26, 76)), ((86, 2), (92, 4)), lean=-3, lift=0.0),
    "standing_on_chair": Pose(((-30, -20), (30, 20)), lift=SEAT),
    "kicking": Pose(((-60, -30), (50, 70)), ((-10, -16), (64, 52)), lean=-10),
    "ball_overhead": Pose(((-165, 172), (165, -172))),
    "carrying": Pose(((34, 84), (40, 90)), ((-9, -9), (13, 5))),
    "pushing": Pose(((70, 84), (76, 88)), ((-42, -34), (6, -18)), lean=24),
    "sitting_on_box": Pose(((20, 62), (26, 70)), ((86, 2), (92, 4)), lean=-3),
    "balloon": Pose(((-14, -8), (60, 128))),
    "kite": Pose(((-16, -8), (84, 118)), lean=-6),
    "climbing": Pose(((150, 176), (120, 178)), ((40, -30), (8, -6)), lift=0.22),
    "ladder_carried": Pose(((-40, -160), (40, 160)), ((-16, -6), (18, -4))),
    "reading": Pose(((-26, 68), (26, -68))),
    "handstand": Pose(((6, 4), (-6, -4)), ((186, 182), (174, 178)), lean=180),
}
ARMS = {
    "both_up": ((-158, -168), (158, 168)),
    "one_up": ((-14, -8), (160, 170)),
    "both_down": ((-14, -8), (14, 8)),
    "spread": ((-88, -90), (88, 90)),
    "hips": ((-52, 48), (52, -48)),
}
LEGS = {
    "one_lifted": ((-3, -3), (80, -4)),
    "apart": ((-36, -34), (36, 34)),
    "together": ((-1, 0), (1, 0)),
}


def act(c: Canvas, action: str, look: Look, dice: Dice) -> None:
    """Draw a person doing something, with what that needs."""
    height = (0.5 if look.child else 0.6) * dice.between(0.94, 1.04)
    cx = 0.5 + dice.between(-0.07, 0.07)
    if action in ("kicking", "pushing", "kite", "balloon", "carrying"):
        cx -= 0.1
    body = pose_body(POSES[action], cx, GROUND, height)
    _shadow(c, body)
    if action in BEFORE:
        BEFORE[action](c, body)
    draw_body(c, body, look, eyes_closed=action == "lying")
    if action in AFTER:
        AFTER[action](c, body)


def stand(c: Canvas, arms: str, legs: str, look: Look, dice: Dice) -> None:
    """Draw a standing person with the arms or the legs in a given state."""
    neutral = Pose()
    pose = Pose(
        ARMS.get(arms, neutral.arms if legs != "one_lifted" else ((-50, -40), (50, 40))),
        LEGS.get(legs, neutral.legs),
    )
    height = (0.6 if look.child else 0.68) * dice.between(0.94, 1.02)
    body = pose_body(pose, 0.5 + dice.between(-0.08, 0.08), GROUND, height)
    _shadow(c, body)
    draw_body(c, body, look)


def _shadow(c: Canvas, body: Body) -> None:
    c.ellipse(Box(body.hip[0], GROUND, 0.36 * body.height, 0.03), (150, 150, 138))


def _chair_under(c: Canvas, body: Body) -> None:
    _chair(c, body.hip[0] - 0.01, body.hip[1] + 0.05 * body.height, body.height)


def _chair_below(c: Canvas, body: Body) -> None:
    _chair(c, body.hip[0], GROUND - SEAT * body.height, body.height)


def _chair(c: Canvas, x: float, seat: float, height: float) -> None:
    width, wood, edge = 0.26 * height, WOOD, outline_of(WOOD)
    c.rect(Box(x - 0.13 * height, seat - 0.14 * height, 0.03 * height, 0.32 * height), wood, edge)
    for side in (-1, 1):
        leg = Box(x + side * 0.11 * height, (seat + GROUND) / 2, 0.028 * height, GROUND - seat)
        c.rect(leg, shade(wood, 0.85), edge)
    c.rect(Box(x, seat, width, 0.035 * height), wood, edge)


def _box_under(c: Canvas, body: Body) -> None:
    top = body.hip[1] + 0.05 * body.height
    carton(c, Box(body.hip[0], (top + GROUND) / 2, 0.26 * body.height, GROUND - top), CARTON)


def _ladder_behind(c: Canvas, body: Body) -> None:
    x = (body.hands[0][0] + body.hands[1][0]) / 2
    ladder(c, (x + 0.02, GROUND + 0.02), (x + 0.02, 0.04), 0.13, shade(WOOD, 0.8))


def _football(c: Canvas, body: Body) -> None:
    x, y = body.feet[1]
    ball(c, Box(x + 0.09, y - 0.03, 0.1, 0.1), (250, 250, 247))


def _ball_overhead(c: Canvas, body: Body) -> None:
    x = (body.hands[0][0] + body.hands[1][0]) / 2
    ball(c, Box(x, body.hands[0][1] - 0.05, 0.14, 0.14), TOY)


def _box_carried(c: Canvas, body: Body) -> None:
    x, y = body.hands[1]
    carton(c, Box(x + 0.05, y - 0.05, 0.16, 0.15), CARTON)


def _box_pushed(c: Canvas, body: Body) -> None:
    x = max(hand[0] for hand in body.hands)
    tall = 0.5 * body.height
    carton(c, Box(x + 0.13, GROUND - tall / 2, 0.24, tall), CARTON)


def _balloon_held(c: Canvas, body: Body) -> None:
    x, y = body.hands[1]
    c.line([(x, y), (x + 0.02, y - 0.1)], (60, 60, 66), 0.005)
    balloon(c, Box(x + 0.02, y - 0.2, 0.16, 0.23), (214, 64, 58))


def _kite_flown(c: Canvas, body: Body) -> None:
    x, y = body.hands[1]
    c.line([(x, y), (x + 0.12, y - 0.2), (0.76, 0.22)], (80, 80, 86), 0.004)
    diamond(c, Box(0.78, 0.2, 0.17, 0.2), (58, 114, 196))


def _ladder_carried(c: Canvas, body: Body) -> None:
    y = (body.hands[0][1] + body.hands[1][1]) / 2
    ladder(c, (body.hip[0] - 0.36, y), (body.hip[0] + 0.36, y), 0.1, shade(WOOD, 0.8))


def _book_held(c: Canvas, body: Body) -> None:
    x = (body.hands[0][0] + body.hands[1][0]) / 2
    y = body.hands[0][1] - 0.015
    for side in (-1, 1):
        page = [
            (x, y - 0.045),
            (x + side * 0.075, y - 0.06),
            (x + side * 0.075, y + 0.035),
            (x, y + 0.05),
        ]
        c.polygon(page, PAPER, (120, 60, 60))


BEFORE: dict[str, Callable[[Canvas, Body], None]] = {
    "sitting": _chair_under,
    "standing_on_chair": _chair_below,
    "sitting_on_box": _box_under,
    "climbing": _ladder_behind,
    "balloon": _balloon_held,
    "kite": _kite_flown,
}
AFTER: dict[str, Callable[[Canvas, Body], None]] = {
    "kicking": _football,
    "ball_overhead": _ball_overhead,
    "carrying": _box_carried,
    "pushing": _box_pushed,
    "ladder_carried": _ladder_carried,
    "reading": _book_held,
}


def shaped_object(
    c: Canvas, thing: str, outline: Callable[[Canvas, Box, Colour], None], b: Box, colour: Colour
) -> None:
    """Draw an object whose outline is the given shape."""
    if thing in STRINGS:
        c.line(
            [b.at(0.5, 0.9), b.at(0.44, 1.15), b.at(0.56, 1.4), b.at(0.48, 1.75)],
            STRINGS[thing],
            0.006,
        )
    if thing == "sign":
        c.rect(Box(b.cx, b.bottom + 0.16, 0.035, 0.4), (126, 130, 136), (92, 96, 102))
    outline(c, b, colour)
    if thing in INSIDES:
        share, inner = INSIDES[thing]
        outline(c, b.part(0.5, 0.5, share, share), inner or shade(colour, 1.4))
    if thing in DETAILS:
        DETAILS[thing](c, b, colour)


def _window_bars(c: Canvas, b: Box, colour: Colour) -> None:
    for start, end in (((0.5, 0.2), (0.5, 0.86)), ((0.26, 0.55), (0.74, 0.55))):
        c.line([b.at(*start), b.at(*end)], colour, 0.014)


def _shine(c: Canvas, b: Box, colour: Colour) -> None:
    del colour
    for x in (0.4, 0.5):
        c.line([b.at(x, 0.62), b.at(x + 0.14, 0.44)], (255, 255, 255), 0.012)


def _clock_hands(c: Canvas, b: Box, colour: Colour) -> None:
    del colour
    c.line([b.at(0.5, 0.54), b.at(0.5, 0.33)], (40, 40, 46), 0.014)
    c.line([b.at(0.5, 0.54), b.at(0.63, 0.6)], (40, 40, 46), 0.018)
    c.disc(*b.at(0.5, 0.54), 0.016, (40, 40, 46))


def _chips(c: Canvas, b: Box, colour: Colour) -> None:
    del colour
    for x, y in ((0.42, 0.42), (0.58, 0.46), (0.5, 0.6), (0.4, 0.62), (0.6, 0.66)):
        c.disc(*b.at(x, y), 0.016, (84, 54, 40))


def _button(c: Canvas, b: Box, colour: Colour) -> None:
    c.disc(*b.at(0.5, 0.54), 0.022, shade(colour, 0.7))


STRINGS: dict[str, Colour] = {"kite": (70, 90, 130), "balloon": (90, 90, 96)}
INSIDES: dict[str, tuple[float, Colour | None]] = {
    "window": (0.8, (190, 220, 236)),
    "mirror": (0.82, (222, 234, 240)),
    "sign": (0.72, (252, 250, 244)),
    "rug": (0.7, None),
    "clock": (0.82, (252, 250, 244)),
    "cake": (0.72, None),
    "kite": (0.45, None),
}
DETAILS: dict[str, Callable[[Canvas, Box, Colour], None]] = {
    "window": _window_bars,
    "mirror": _shine,
    "clock": _clock_hands,
    "cookie": _chips,
    "cushion": _button,
}
