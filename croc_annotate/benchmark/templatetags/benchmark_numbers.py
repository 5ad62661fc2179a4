"""Numbers as the leaderboard's templates show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.utils.translation import gettext, gettext_noop

from croc_annotate.lib.reasons import reason_text

if TYPE_CHECKING:
    from collections.abc import Mapping

register = template.Library()

# For the translators: what `words` makes of directions, statistics, groupings of pairs, facts of a run.
PHRASES = (
    gettext_noop("text, forward"),
    gettext_noop("text, inverse"),
    gettext_noop("image, forward"),
    gettext_noop("image, inverse"),
    gettext_noop("average"),
    gettext_noop("all four"),
    gettext_noop("generator"),
    gettext_noop("property"),
    gettext_noop("topic"),
    gettext_noop("entity"),
    gettext_noop("difficulty"),
    gettext_noop("overall"),
    gettext_noop("text"),
    gettext_noop("image"),
    gettext_noop("group"),
    gettext_noop("name"),
    gettext_noop("model"),
    gettext_noop("revision"),
    gettext_noop("prompt"),
    gettext_noop("preprocessing"),
    gettext_noop("image backend"),
    gettext_noop("dtype"),
    gettext_noop("code version"),
    gettext_noop("ties"),
)


register.filter("reason", reason_text)


@register.filter
def digits(value: float | str | None, places: int = 3) -> str:
    """A number with a true minus sign, or a dash where there is none.

    "" is what a template makes of a key that is not there: a run that computed nothing, because
    all was stored already, has no images per second.
    """
    return (
        "–"
        if value is None or isinstance(value, str)
        else f"{round(value, places) + 0.0:.{places}f}".replace("-", "−")
    )


@register.filter
def thousands(value: int | None) -> str:
    """A whole number with separators, or a dash."""
    return "–" if value is None else f"{value:,}"


@register.filter
def percent(value: float | str | None) -> str:
    """A share in percent, one decimal where it is small."""
    if value is None or isinstance(value, str):
        return "–"
    return f"{100 * value:.0f} %" if value in {0, 1} or value >= 0.1 else f"{100 * value:.1f} %"


@register.filter
def item(mapping: Mapping[str, Any], key: str) -> Any:
    """The value under a key that is only known in the template; "" without one."""
    return mapping.get(key, "")


@register.filter
def words(slug: str) -> str:
    """text_forward as "text, forward", in the reader's language; body_parts as "body parts"."""
    part, _, direction = slug.partition("_")
    directed = direction in {"forward", "inverse"}
    phrase = f"{part}, {direction}" if directed else slug.replace("_", " ")
    return gettext(phrase)


@register.filter
def interval_spark(entry: Any) -> str:
    """value,low,high of the average, for a small plot in a cell; "" without an interval."""
    bounds = entry.bounds["average"]["overall"]
    if entry.overall is None or bounds.low is None:
        return ""
    return f"{entry.overall},{bounds.low},{bounds.high}"
