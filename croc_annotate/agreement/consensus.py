"""From votes to a verdict on each item: the three rules, adjudication and verification.

All functions work on columns (one entry per item), so that a campaign of 80,000
items is decided at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from croc_annotate.annotation.redundancy import Policy

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
RuleName = Literal["majority", "unanimous", "posterior"]

RULES: tuple[RuleName, ...] = ("majority", "unanimous", "posterior")
PENDING, ACCEPTED, REJECTED, DISPUTED = range(4)
STATES = ("pending", "accepted", "rejected", "disputed")
DEFAULT_THRESHOLD = 0.95
# Two judgements an item cannot tell a careless annotator from a hard item.
POSTERIOR_NEEDS = 3


class RuleRefusedError(ValueError):
    """The rule cannot be applied to these items; the message says why and what helps."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How votes become a verdict; ``min_judgements`` None means: as the campaign wants."""

    name: RuleName = "majority"
    min_judgements: int | None = None
    threshold: float = DEFAULT_THRESHOLD

    def __post_init__(self) -> None:
        if self.name not in RULES:
            raise ValueError(f"unknown rule {self.name!r}: use one of {', '.join(RULES)}")
        if self.min_judgements is not None and self.min_judgements < 1:
            raise ValueError("min_judgements must be at least 1")
        if not 0.5 < self.threshold <= 1.0:
            raise ValueError("the threshold must be above 0.5 and at most 1")
        if self.name == "posterior" and (self.min_judgements or POSTERIOR_NEEDS) < POSTERIOR_NEEDS:
            raise RuleRefusedError("the posterior rule needs at least 3 judgements an item")

    def as_dict(self) -> dict[str, object]:
        """Return the rule as JSON-able parameters."""
        found: dict[str, object] = {"rule": self.name, "min_judgements": self.min_judgements}
        if self.name == "posterior":
            found["threshold"] = self.threshold
        return found


@dataclass(frozen=True, slots=True)
class Votes:
    """Counts per item, as columns of one length."""

    accept: Ints
    reject: Ints
    unsure: Ints
    complete: Bools

    @property
    def votes(self) -> Ints:
        """Accepts and rejects: ``unsure`` is no vote."""
        return self.accept + self.reject

    @property
    def judgements(self) -> Ints:
        """All judgements, with those that could not tell."""
        return self.votes + self.unsure


def decide(
    rule: Rule,
    votes: Votes,
    policy: Policy,
    *,
    posterior: Floats | None = None,
    adjudicated: Codes | None = None,
) -> Codes:
    """Return the state code of each item; ``adjudicated`` is 1, 0 or -1 (none) and overrides."""
    if rule.name == "posterior":
        refuse_posterior_without_three(votes, policy)
        states = _by_posterior(rule, votes, posterior)
    else:
        states = _by_votes(rule, votes, policy)
    if adjudicated is not None:
        states = np.where(adjudicated == 1, ACCEPTED, states)
        states = np.where(adjudicated == 0, REJECTED, states)
    return states.astype(np.int8)


def complete(
    policy: Policy, accept: Ints, reject: Ints, unsure: Ints, extra: Ints | int = 0
) -> Bools:
    """Tell which items need no further judgement (``redundancy.is_complete`` on columns).

    ``extra`` judgements more are wanted of items that a reviewer sent back.
    """
    done: Bools = needed(policy, accept, reject, unsure, extra) == 0
    return done


def needed(policy: Policy, accept: Ints, reject: Ints, unsure: Ints, extra: Ints | int = 0) -> Ints:
    """Judgements that each item certainly still gets (``redundancy.needed`` on columns)."""
    split = (accept > 0) & (reject > 0) & policy.adaptive
    most = np.where(split, policy.most, policy.least) + extra
    left = most - (accept + reject + unsure)
    if policy.adaptive:
        left = np.minimum(left, most // 2 + 1 - np.maximum(accept, reject))
    return np.maximum(left, 0)


def enough_votes(rule: Rule, votes: Votes, policy: Policy) -> Bools:
    """Tell which items have the votes that the rule asks for.

    In an adaptive campaign an item has them when it is complete and has a majority's
    worth of votes: one accept beside two "cannot tell" decides nothing.
    """
    if rule.min_judgements is not None:
        return votes.votes >= rule.min_judgements
    if policy.adaptive:
        return votes.complete & (votes.votes >= policy.least // 2 + 1)
    return votes.votes >= policy.least


def refuse_posterior_without_three(votes: Votes, policy: Policy) -> None:
    """Raise RuleRefusedError where the campaign does not give items three judgements."""
    least = policy.least // 2 + 1 if policy.adaptive else policy.least
    if least < POSTERIOR_NEEDS:
        raise RuleRefusedError(
            f"the posterior rule needs three judgements an item and this campaign closes items"
            f" with {least}: use majority or unanimous, or ask for more judgements"
        )
    if not (votes.judgements >= POSTERIOR_NEEDS).any():
        raise RuleRefusedError(
            "the posterior rule needs three judgements an item and no item has them yet"
        )


def verify(own: Codes, other: Codes, *, exclusive: bool) -> Bools:
    """Tell which candidates are verified from the states of their own and other items.

    Without ``exclusive`` the other text is not asked about (-1: no such item).
    """
    verified: Bools = own == ACCEPTED
    return verified & (other == REJECTED) if exclusive else verified


def _by_votes(rule: Rule, votes: Votes, policy: Policy) -> Codes:
    enough = enough_votes(rule, votes, policy)
    accepts, rejects = votes.accept, votes.reject
    if rule.name == "unanimous":
        accepted, rejected = rejects == 0, accepts == 0
    else:
        accepted, rejected = accepts > rejects, rejects > accepts
    open_state = np.where(votes.complete, DISPUTED, PENDING)
    decided = np.select([accepted, rejected], [ACCEPTED, REJECTED], DISPUTED)
    return np.where(enough, decided, open_state).astype(np.int8)


def _by_posterior(rule: Rule, votes: Votes, posterior: Floats | None) -> Codes:
    if posterior is None:
        raise RuleRefusedError("the posterior rule needs a fitted model")
    needed = rule.min_judgements or POSTERIOR_NEEDS
    enough = (votes.judgements >= needed) & (votes.votes > 0)
    open_state = np.where(votes.complete, DISPUTED, PENDING)
    accepted, rejected = posterior >= rule.threshold, posterior <= 1.0 - rule.threshold
    return np.select([enough & accepted, enough & rejected], [ACCEPTED, REJECTED], open_state)
