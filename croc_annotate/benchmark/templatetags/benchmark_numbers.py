"""Numbers as the leaderboard's templates show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template

if TYPE_CHECKING:
    from collections.abc import Mapping

register = template.Library()


@register.filter
def digits(value: float | None, places: int = 3) -> str:
    """A number with a true minus sign, or a dash where there is none."""
    return "–" if value is None else f"{value:.{places}f}".replace("-", "−")


@register.filter
def thousands(value: int | None) -> str:
    """A whole number with separators, or a dash."""
    return "–" if value is None else f"{value:,}"


@register.filter
def percent(value: float | None) -> str:
    """A share in percent, one decimal where it is small."""
    if value is None:
        return "–"
    return f"{100 * value:.0f} %" if value in {0, 1} or value >= 0.1 else f"{100 * value:.1f} %"


@register.filter
def item(mapping: Mapping[str, Any], key: str) -> Any:
    """The value under a key that is only known in the template; "" without one."""
    return mapping.get(key, "")


@register.filter
def words(slug: str) -> str:
    """text_forward as "text, forward"; spatial_relation as "spatial relation"."""
    part, _, direction = slug.partition("_")
    if direction in {"forward", "inverse"}:
        return f"{part}, {direction}"
    return slug.replace("_", " ")


@register.filter
def interval_spark(entry: Any) -> str:
    """value,low,high of the average, for a small plot in a cell; "" without an interval."""
    bounds = entry.bounds["average"]["overall"]
    if entry.overall is None or bounds.low is None:
        return ""
    return f"{entry.overall},{bounds.low},{bounds.high}"
