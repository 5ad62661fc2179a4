"""A surface to draw on in units of the picture's side, with smooth edges.

Everything is drawn at twice the size and averaged down once: edges are smooth and the bytes are
the same for the same calls. Coordinates run from (0, 0), top left, to (1, 1), bottom right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw

if TYPE_CHECKING:
    from collections.abc import Sequence

Colour = tuple[int, int, int]
Point = tuple[float, float]
SCALE = 2


@dataclass(frozen=True)
class Box:
    """Where a thing goes: centre, width and height."""

    cx: float
    cy: float
    w: float
    h: float

    @property
    def left(self) -> float:
        """The left edge."""
        return self.cx - self.w / 2

    @property
    def right(self) -> float:
        """The right edge."""
        return self.cx + self.w / 2

    @property
    def top(self) -> float:
        """The upper edge."""
        return self.cy - self.h / 2

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.cy + self.h / 2

    def at(self, x: float, y: float) -> Point:
        """The point at share x of the width and y of the height, from the top left."""
        return self.left + x * self.w, self.top + y * self.h

    def part(self, x: float, y: float, w: float, h: float) -> Box:
        """The box centred at share (x, y), with shares w and h of this one's size."""
        cx, cy = self.at(x, y)
        return Box(cx, cy, w * self.w, h * self.h)


def shade(colour: Colour, factor: float) -> Colour:
    """Darken (factor < 1) or lighten (factor > 1, towards white) a colour."""
    if factor <= 1:
        red, green, blue = (int(channel * factor) for channel in colour)
    else:
        share = min(1.0, factor - 1)
        red, green, blue = (int(channel + (255 - channel) * share) for channel in colour)
    return red, green, blue


def outline_of(colour: Colour) -> Colour:
    """A contour that shows on any background: darker, or lighter for what is nearly black."""
    return shade(colour, 1.45) if sum(colour) < 200 else shade(colour, 0.68)


def ring(cx: float, cy: float, radius: float, corners: int, turn: float = -90.0) -> list[Point]:
    """The corners of a regular polygon, the first at ``turn`` degrees."""
    angles = [math.radians(turn + 360 * i / corners) for i in range(corners)]
    return [(cx + radius * math.cos(a), cy + radius * math.sin(a)) for a in angles]


class Canvas:
    """A square picture in the making."""

    def __init__(self, size: int, background: Colour) -> None:
        self.size = size
        self._side = size * SCALE
        self._image = Image.new("RGB", (self._side, self._side), background)
        self._draw = ImageDraw.Draw(self._image)
        self.line_width = 0.006

    def finish(self) -> Image.Image:
        """The picture at its size."""
        return self._image.reduce(SCALE)

    def gradient(self, top: Colour, bottom: Colour, y0: float = 0.0, y1: float = 1.0) -> None:
        """Fill a band of the picture from one colour to another."""
        start, stop = self._px(y0), self._px(y1)
        for y in range(start, stop):
            share = (y - start) / max(1, stop - start - 1)
            row = tuple(int(a + (b - a) * share) for a, b in zip(top, bottom, strict=True))
            self._draw.line([(0, y), (self._side, y)], fill=row)

    def ellipse(self, box: Box, fill: Colour | None, edge: Colour | None = None) -> None:
        """An ellipse that fills the box."""
        self._draw.ellipse(self._corners(box), fill, edge, self._width(edge))

    def disc(self, cx: float, cy: float, radius: float, fill: Colour) -> None:
        """A circle without contour."""
        self.ellipse(Box(cx, cy, 2 * radius, 2 * radius), fill)

    def rect(
        self, box: Box, fill: Colour | None, edge: Colour | None = None, radius: float = 0.0
    ) -> None:
        """A rectangle, its corners rounded by ``radius``."""
        corners = self._corners(box)
        self._draw.rounded_rectangle(corners, self._px(radius), fill, edge, self._width(edge))

    def polygon(self, points: Sequence[Point], fill: Colour, edge: Colour | None = None) -> None:
        """A filled polygon with a rounded contour."""
        self._draw.polygon(self._points(points), fill)
        if edge:
            self.line([*points, points[0]], edge, self.line_width)

    def line(self, points: Sequence[Point], colour: Colour, width: float) -> None:
        """A line with round ends and joints."""
        thickness = max(1, self._px(width))
        pixels = self._points(points)
        self._draw.line(pixels, colour, thickness, joint="curve")
        r = thickness / 2
        for x, y in pixels:
            self._draw.ellipse((x - r, y - r, x + r, y + r), colour)

    def arc(self, box: Box, start: float, end: float, colour: Colour, width: float) -> None:
        """A piece of an ellipse's rim, clockwise from 3 o'clock, in degrees."""
        self._draw.arc(self._corners(box), start, end, colour, max(1, self._px(width)))

    def pie(
        self, box: Box, start: float, end: float, fill: Colour, edge: Colour | None = None
    ) -> None:
        """A slice of an ellipse, clockwise from 3 o'clock, in degrees."""
        corners = self._corners(box)
        if edge is None:
            self._draw.pieslice(corners, start, end, fill)
        else:
            self._draw.pieslice(corners, start, end, fill, edge, self._width(edge))

    def _px(self, share: float) -> int:
        return round(share * self._side)

    def _points(self, points: Sequence[Point]) -> list[Point]:
        return [(x * self._side, y * self._side) for x, y in points]

    def _corners(self, box: Box) -> tuple[int, int, int, int]:
        left, top = self._px(box.left), self._px(box.top)
        return left, top, max(left, self._px(box.right)), max(top, self._px(box.bottom))

    def _width(self, edge: Colour | None) -> int:
        return max(1, self._px(self.line_width)) if edge else 0
