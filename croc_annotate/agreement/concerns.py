"""Whom to talk to first, and why: reasons in words with a weight (pure).

A reason is given only where it is both clear (beyond chance) and large (worth a
talk).  Its weight says how far beyond; the ranking is the sum, so that anybody can
see where a place in it comes from.  A reason is a question to ask, not a verdict.

A reason is a code with facts: commands, files and the API put them into the English
sentence here; pages put them into the sentence of their reader (``people_pages``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Facts = dict[str, float | str]
WriteNumber = Callable[[float, int], str]  # value, decimals

CLEAR = 3.3  # standard errors; about 1 in 1,000 by chance
FEW = 20  # judgements below which nothing is said


def gettext_noop(text: str) -> str:
    """Mark a text for the translators, who collect by this name. Django stays out of here."""
    return text


SENTENCES = {
    "gold": gettext_noop(
        "%(part)s of %(n)s gold items right (%(share)s, interval %(low)s–%(high)s);"
        " %(asked_share)s are asked for"
    ),
    "others": gettext_noop(
        "agrees with the majority of the others in %(share)s of %(n)s votes; the middle person"
        " in %(usual_share)s"
    ),
    "share": gettext_noop(
        "accepts %(share)s where others accept %(others_share)s of the same items"
    ),
    "pace": gettext_noop(
        "takes %(seconds)s s for half of the items; the middle person %(usual_seconds)s s"
    ),
    "burst": gettext_noop(
        "gave %(n)s answers within one minute; the middle person at most %(usual_n)s"
    ),
    "run": gettext_noop(
        "gave %(n)s equal answers in a row, which chance makes in fewer than 1 of 1,000"
    ),
    "drift": gettext_noop(
        "agreement with others fell from %(first_share)s in the first third of the work"
        " to %(last_share)s in the last"
    ),
    "unsure": gettext_noop("could not tell %(share)s of the items"),
    "pair": gettext_noop(
        "gave the same answer as %(person)s to %(equal)s of %(common)s items; their skill"
        " explains %(expected)s"
    ),
}


@dataclass(frozen=True, slots=True)
class Concern:
    """One reason; ``weight`` adds up to a person's place in the ranking."""

    code: str
    weight: float
    facts: Facts

    @property
    def text(self) -> str:
        """The English sentence."""
        return SENTENCES[self.code] % written(self.facts, _english)


def written(facts: Facts, number: WriteNumber) -> dict[str, str]:
    """Facts as a sentence shows them: shares in per cent, seconds with a decimal, counts whole."""
    return {name: _written(name, value, number) for name, value in facts.items()}


def _written(name: str, value: float | str, number: WriteNumber) -> str:
    if isinstance(value, str):
        return value
    if name.endswith("share") or name in {"low", "high"}:
        return f"{number(100 * value, 0)} %"
    return number(value, 1 if name.endswith("seconds") else 0)


def _english(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}"


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
    facts = {name: gold[name] for name in ("part", "n", "low", "high")}
    facts |= {"share": gold["value"], "asked_share": threshold}
    clear = gold["high"] < threshold
    return Concern("gold", 6.0 + 10 * (threshold - gold["value"]) if clear else 2.0, facts)


def _others(row: Row, usual: Usual) -> Concern | None:
    others = row["others"]
    if usual.agreement is None or others["value"] is None or others["n"] < FEW:
        return None
    behind = usual.agreement - others["value"]
    if behind < 0.05 or others["high"] >= usual.agreement:
        return None
    facts = {"share": others["value"], "n": others["n"], "usual_share": usual.agreement}
    return Concern("others", 3.0 + 20 * behind, facts)


def _share(row: Row) -> Concern | None:
    share, others = row["accept_share"], row["accept_share_others"]
    if share["value"] is None or others is None or share["n"] < FEW:
        return None
    apart = share["value"] - others
    error = (max(others * (1 - others), 0.01) / share["n"]) ** 0.5
    if abs(apart) < 0.1 or abs(apart) < CLEAR * error:
        return None
    facts = {"share": share["value"], "others_share": others}
    return Concern("share", 2.0 + 10 * abs(apart), facts)


def _pace(row: Row, usual: Usual) -> Concern | None:
    mine, theirs = row["median_ms"], usual.median_ms
    if mine is None or theirs is None or mine > 0.4 * theirs:
        return None
    facts: Facts = {"seconds": mine / 1000, "usual_seconds": theirs / 1000}
    return Concern("pace", 2.0 + 3 * (1 - mine / theirs), facts)


def _burst(row: Row, usual: Usual) -> Concern | None:
    busiest = row["busiest_minute"]
    if usual.busiest_minute is None or busiest < max(40.0, 3 * usual.busiest_minute):
        return None
    facts = {"n": busiest, "usual_n": usual.busiest_minute}
    return Concern("burst", 2.0 + busiest / 60, facts)


def _run(row: Row) -> Concern | None:
    longest, chance = row["longest_run"], row["longest_run_chance"]
    if longest < 10 or chance is None or chance >= 0.001:
        return None
    return Concern("run", 1.5 + min(longest / 20, 5.0), {"n": longest})


def _drift(row: Row) -> Concern | None:
    drift = row["drift"]
    if drift["difference"] is None or drift["n"] < 3 * FEW or drift["error"] == 0:
        return None
    if drift["difference"] > -0.08 or drift["difference"] > -CLEAR * drift["error"]:
        return None
    facts = {"first_share": drift["first"], "last_share": drift["last"]}
    return Concern("drift", 2.0 - 10 * drift["difference"], facts)


def _unsure(row: Row, usual: Usual) -> Concern | None:
    mine, theirs = row["unsure_share"], usual.unsure_share
    if mine is None or theirs is None or mine < max(0.1, 3 * theirs):
        return None
    return Concern("unsure", 1.0 + 5 * mine, {"share": mine})


def _pairs(row: Row) -> list[Concern]:
    return [
        Concern(
            "pair",
            min(pair["z"], 10.0),
            {
                "person": pair["with"],
                **{name: pair[name] for name in ("equal", "common", "expected")},
            },
        )
        for pair in row["suspicious_pairs"]
    ]
