"""Whom to talk to first, and why: reasons in words with a weight (pure).

A reason is given only where it is both clear (beyond chance) and large (worth a
talk).  Its weight says how far beyond; the ranking is the sum, so that anybody can
see where a place in it comes from.  A reason is a question to ask, not a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

CLEAR = 3.3  # standard errors; about 1 in 1,000 by chance
FEW = 20  # judgements below which nothing is said


@dataclass(frozen=True, slots=True)
class Concern:
    """One reason; ``weight`` adds up to a person's place in the ranking."""

    code: str
    weight: float
    text: str


@dataclass(frozen=True, slots=True)
class Usual:
    """What the middle person does, to compare with."""

    agreement: float | None
    median_ms: float | None
    unsure_share: float | None
    busiest_minute: float | None


def usual_of(rows: list[Row]) -> Usual:
    """Medians over the people who have judged enough to say something."""
    enough = [row for row in rows if row["judgements"] >= FEW]

    def middle(values: list[float | None]) -> float | None:
        known = sorted(value for value in values if value is not None)
        return known[len(known) // 2] if len(known) >= 3 else None

    return Usual(
        agreement=middle([row["others"]["value"] for row in enough]),
        median_ms=middle([row["median_ms"] for row in enough]),
        unsure_share=middle([row["unsure_share"] for row in enough]),
        busiest_minute=middle([float(row["busiest_minute"]) for row in enough]),
    )


def concerns_about(row: Row, usual: Usual, *, gold_threshold: float) -> list[Concern]:
    """All reasons to talk to one person, the weightiest first."""
    found = [_gold(row, gold_threshold)]
    if row["judgements"] >= FEW:
        found += [
            _others(row, usual),
            _share(row),
            _pace(row, usual),
            _burst(row, usual),
            _run(row),
            _drift(row),
            _unsure(row, usual),
            *_pairs(row),
        ]
    clear = [concern for concern in found if concern]
    return sorted(clear, key=lambda concern: -concern.weight)


def _gold(row: Row, threshold: float) -> Concern | None:
    gold = row["gold"]
    if gold["value"] is None or gold["n"] < 5 or gold["value"] >= threshold:
        return None
    words = (
        f"{gold['part']} of {gold['n']} gold items right ({_pc(gold['value'])}, interval "
        f"{_pc(gold['low'])}–{_pc(gold['high'])}); {_pc(threshold)} are asked for"
    )
    clear = gold["high"] < threshold
    return Concern("gold", 6.0 + 10 * (threshold - gold["value"]) if clear else 2.0, words)


def _others(row: Row, usual: Usual) -> Concern | None:
    others = row["others"]
    if usual.agreement is None or others["value"] is None or others["n"] < FEW:
        return None
    behind = usual.agreement - others["value"]
    if behind < 0.05 or others["high"] >= usual.agreement:
        return None
    words = (
        f"agrees with the majority of the others in {_pc(others['value'])} of "
        f"{others['n']:,} votes; the middle person in {_pc(usual.agreement)}"
    )
    return Concern("others", 3.0 + 20 * behind, words)


def _share(row: Row) -> Concern | None:
    share, others = row["accept_share"], row["accept_share_others"]
    if share["value"] is None or others is None or share["n"] < FEW:
        return None
    apart = share["value"] - others
    error = (max(others * (1 - others), 0.01) / share["n"]) ** 0.5
    if abs(apart) < 0.1 or abs(apart) < CLEAR * error:
        return None
    words = f"accepts {_pc(share['value'])} where others accept {_pc(others)} of the same items"
    return Concern("share", 2.0 + 10 * abs(apart), words)


def _pace(row: Row, usual: Usual) -> Concern | None:
    mine, theirs = row["median_ms"], usual.median_ms
    if mine is None or theirs is None or mine > 0.4 * theirs:
        return None
    words = (
        f"takes {mine / 1000:.1f} s for half of the items; the middle person {theirs / 1000:.1f} s"
    )
    return Concern("pace", 2.0 + 3 * (1 - mine / theirs), words)


def _burst(row: Row, usual: Usual) -> Concern | None:
    busiest = row["busiest_minute"]
    if usual.busiest_minute is None or busiest < max(40.0, 3 * usual.busiest_minute):
        return None
    words = f"gave {busiest} answers within one minute; the middle person at most {usual.busiest_minute:.0f}"
    return Concern("burst", 2.0 + busiest / 60, words)


def _run(row: Row) -> Concern | None:
    longest, chance = row["longest_run"], row["longest_run_chance"]
    if longest < 10 or chance is None or chance >= 0.001:
        return None
    words = f"gave {longest} equal answers in a row, which chance makes in fewer than 1 of 1,000"
    return Concern("run", 1.5 + min(longest / 20, 5.0), words)


def _drift(row: Row) -> Concern | None:
    drift = row["drift"]
    if drift["difference"] is None or drift["n"] < 3 * FEW or drift["error"] == 0:
        return None
    if drift["difference"] > -0.08 or drift["difference"] > -CLEAR * drift["error"]:
        return None
    words = (
        f"agreement with others fell from {_pc(drift['first'])} in the first third of the work"
        f" to {_pc(drift['last'])} in the last"
    )
    return Concern("drift", 2.0 - 10 * drift["difference"], words)


def _unsure(row: Row, usual: Usual) -> Concern | None:
    mine, theirs = row["unsure_share"], usual.unsure_share
    if mine is None or theirs is None or mine < max(0.1, 3 * theirs):
        return None
    return Concern("unsure", 1.0 + 5 * mine, f"could not tell {_pc(mine)} of the items")


def _pairs(row: Row) -> list[Concern]:
    return [
        Concern(
            "pair",
            min(pair["z"], 10.0),
            f"gave the same answer as {pair['with']} to {pair['equal']:,} of {pair['common']:,}"
            f" items; their skill explains {pair['expected']:,.0f}",
        )
        for pair in row["suspicious_pairs"]
    ]


def _pc(share: float) -> str:
    return f"{100 * share:.0f} %"
