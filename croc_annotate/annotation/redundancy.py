"""How many judgements an item still needs (pure arithmetic).

``fixed``: exactly ``least`` judgements. ``adaptive``: with m = ``least``, and m = ``most`` once
two votes differ, an item is complete when one verdict has ⌊m/2⌋+1 votes or m judgements exist.
``unsure`` uses a place but is no vote.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """Counted judgements of one item, by verdict."""

    accept: int = 0
    reject: int = 0
    unsure: int = 0

    @property
    def total(self) -> int:
        """All judgements, votes or not."""
        return self.accept + self.reject + self.unsure

    def plus(self, verdict: str, change: int = 1) -> Tally:
        """The tally after ``change`` more judgements ``verdict``."""
        return Tally(
            self.accept + (change if verdict == "accept" else 0),
            self.reject + (change if verdict == "reject" else 0),
            self.unsure + (change if verdict == "unsure" else 0),
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """A campaign's redundancy."""

    adaptive: bool
    least: int
    most: int

    def more(self, extra: int) -> Policy:
        """The policy of an item for which a reviewer asked ``extra`` judgements more."""
        return Policy(self.adaptive, self.least + extra, self.most + extra)


def wanted(policy: Policy, tally: Tally) -> int:
    """Most judgements that the item may get, seen from ``tally`` (m of the rule)."""
    if policy.adaptive and tally.accept and tally.reject:
        return policy.most
    return policy.least


def needed(policy: Policy, tally: Tally) -> int:
    """Judgements that may be handed out now without the danger of one too many.

    In an adaptive campaign this is the fewest that could complete the item: two for a new item
    of three, because two equal votes would end it and a third would have been for nothing.
    """
    most = wanted(policy, tally)
    left = most - tally.total
    if policy.adaptive:
        left = min(left, most // 2 + 1 - max(tally.accept, tally.reject))
    return max(left, 0)


def is_complete(policy: Policy, tally: Tally) -> bool:
    """True if no further judgement is wanted."""
    return needed(policy, tally) == 0


def places(policy: Policy, tally: Tally, leased: int) -> int:
    """Judgements that may be handed out beside the ``leased`` ones that people hold."""
    return max(needed(policy, tally) - leased, 0)
