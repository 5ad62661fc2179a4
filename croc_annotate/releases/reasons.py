"""Why a candidate is in a release or not. Pure: states in, one reason out."""

from __future__ import annotations

from typing import Literal

State = Literal["pending", "accepted", "rejected", "disputed"]
Reason = Literal[
    "verified", "rejected", "disputed", "too_few", "other_undecided", "other_unjudged", "failed",
    "not_rendered", "inactive",
]  # fmt: skip
REASONS: tuple[Reason, ...] = (
    "verified", "rejected", "disputed", "too_few", "other_undecided", "other_unjudged", "failed",
    "not_rendered", "inactive",
)  # fmt: skip

_BY_OWN: dict[str, Reason] = {
    "pending": "too_few",
    "disputed": "disputed",
    "rejected": "rejected",
    "accepted": "verified",
}


def reason_for(
    *,
    pair_active: bool,
    candidate_state: str,
    own: State | None,
    other: State | None,
    other_judgements: int,
    exclusive: bool,
) -> Reason:
    """The first thing that keeps a candidate out, or ``verified``.

    ``own`` and ``other`` are the states of its two items, None where there is no such item.
    With ``exclusive`` an image that people accept for the other text too is ``rejected``: it
    does not tell the two texts apart.
    """
    if not pair_active:
        return "inactive"
    if candidate_state != "rendered":
        return "failed" if candidate_state == "failed" else "not_rendered"
    reason = _BY_OWN[own or "pending"]
    if reason != "verified" or not exclusive:
        return reason
    return _by_other(other, other_judgements)


def _by_other(other: State | None, judgements: int) -> Reason:
    if other == "rejected":
        return "verified"
    if other == "accepted":
        return "rejected"
    if other is None or judgements == 0:
        return "other_unjudged"
    return "other_undecided"
