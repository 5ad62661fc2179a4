"""How far apart items of one pair come for one person (pure).

The campaign's order keeps pairs apart, but a person sees a part of it only: what others have
filled is skipped. So the last items of each person are remembered, and what would stand too
near to one of them is passed over. While there is other work the distance is the campaign's;
when little is left, `LAST_DISTANCE` items or `LAST_SECONDS` are enough for the other text of a
pair, because nothing else could ever finish the campaign.
"""

from __future__ import annotations

from dataclasses import dataclass, field

REMEMBERED = 40
LAST_DISTANCE = 5
LAST_SECONDS = 60
FORGOTTEN_SECONDS = 30 * 60


@dataclass(frozen=True, slots=True)
class Seen:
    """One screen that a person was given: a pair's text, and the images (roots of near-duplicates)."""

    position: int
    pair: int
    group: str
    at: int
    images: tuple[int, ...] = ()

    def as_row(self) -> list[object]:
        """For JSON; the text's hash is cut, 48 bits are enough within one pair."""
        return [self.position, self.pair, self.group[:12], self.at, list(self.images)]

    @classmethod
    def from_row(cls, row: list[object]) -> Seen:
        """The inverse of `as_row`."""
        position, pair, group, at, images = row
        return cls(position, pair, group, at, tuple(images))  # type: ignore[arg-type]


@dataclass(slots=True)
class Window:
    """The last screens of one person, oldest first.

    ``coming`` is a screen whose place among the next ones is not fixed yet. All that is chosen
    keeps clear of it, and it stands between no two of them: where it ends up before an item, that
    item was still counted as one place nearer to what came before.
    """

    distance: int
    seen: list[Seen] = field(default_factory=list)
    coming: Seen | None = None

    def last(self) -> list[Seen]:
        """Screens within the campaign's distance, however long ago."""
        return self.seen[-self.distance :] if self.distance else []

    def near(self, now: int) -> list[Seen]:
        """Screens that are too near for the same pair to come again."""
        return self._last(self.distance, now, FORGOTTEN_SECONDS)

    def nearest(self, now: int) -> list[Seen]:
        """Screens that are too near for the pair's *other* text even when little is left."""
        return self._last(min(LAST_DISTANCE, self.distance), now, LAST_SECONDS)

    def free_at(self, now: int) -> int | None:
        """When the oldest of `nearest` is forgotten; None if there is none."""
        return min((seen.at + LAST_SECONDS for seen in self.nearest(now)), default=None)

    def _last(self, count: int, now: int, seconds: int) -> list[Seen]:
        last = self.seen[-count:] if count else []
        if self.coming is not None and count:
            last = [*last, self.coming]
        return [seen for seen in last if now - seen.at < seconds]

    def allows(self, *, pair: int, group: str, image: int, now: int, strict: bool) -> bool:
        """True if an item may come next; ``strict`` by the campaign's distance."""
        if strict:
            return not any(s.pair == pair or image in s.images for s in self.near(now))
        return not any(s.pair == pair and s.group != group[:12] for s in self.nearest(now))

    def push(self, seen: Seen) -> None:
        """Remember a screen."""
        self.seen.append(_short(seen))
        del self.seen[:-REMEMBERED]

    def expect(self, seen: Seen) -> None:
        """A screen will come among the next ones."""
        self.coming = _short(seen)

    def settle(self, back: int) -> None:
        """The screen that was expected stands ``back`` screens before the end."""
        if self.coming is not None:
            self.seen.insert(max(len(self.seen) - back, 0), self.coming)
            del self.seen[:-REMEMBERED]
            self.coming = None

    def forget(self, positions: set[int]) -> None:
        """Screens given back unseen were not seen."""
        self.seen = [seen for seen in self.seen if seen.position not in positions]

    def cursor(self, current: int) -> int:
        """The position from which this person's queue is read on.

        It stays `REMEMBERED` screens behind, so that what was passed over (locked by another
        claim for a moment, or too near) is met again.
        """
        if len(self.seen) < REMEMBERED:
            return current
        return min(seen.position for seen in self.seen)


def _short(seen: Seen) -> Seen:
    return Seen(seen.position, seen.pair, seen.group[:12], seen.at, seen.images)
