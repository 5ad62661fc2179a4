"""What the annotators page and a person's page show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext

from croc_annotate.agreement import charts
from croc_annotate.agreement.cells import percent
from croc_annotate.agreement.concerns import SENTENCES, written
from croc_annotate.agreement.wording import PEOPLE

if TYPE_CHECKING:
    from croc_annotate.annotation.models import Campaign

Row = dict[str, Any]

_WITH_RANGE = ("gold", "others", "sensitivity", "specificity")


def annotators_context(campaign: Campaign, data: Row) -> Row:
    """Table rows with names, links and formatted numbers; the chart of skills."""
    rows = [shown(row, campaign) for row in named(data["rows"])]
    return {
        "rows": rows,
        "to_talk_to": [row for row in rows if row["concerns"]],
        "model": data["model"],
        "help": PEOPLE,
        "skill_data": charts.skill_chart(rows),
    }


def named(rows: list[Row]) -> list[Row]:
    """Add the people's names (for admins only) and whether they are simulated."""
    users = get_user_model().objects.in_bulk([row["id"] for row in rows])
    return [
        {
            **row,
            "name": str(users[row["id"]]) if row["id"] in users else row["person"],
            "is_simulated": row["id"] in users and users[row["id"]].is_simulated,
        }
        for row in rows
    ]


def shown(row: Row, campaign: Campaign) -> Row:
    """One person as the table shows them."""
    address = reverse("agreement:annotator", args=[row["id"]])
    return {
        **row,
        "concerns": [{**one, "text": concern_text(one)} for one in row["concerns"]],
        "href": f"{address}?{urlencode({'campaign': campaign.slug})}",
        "share_text": percent(row["accept_share"]["value"]),
        "share_others_text": percent(row["accept_share_others"]),
        "gold_text": percent(row["gold"]["value"]),
        "others_text": percent(row["others"]["value"]),
        "sensitivity_text": percent(row["sensitivity"]["value"]),
        "specificity_text": percent(row["specificity"]["value"]),
        "unsure_text": percent(row["unsure_share"], 1),
        "pace_text": "" if row["median_ms"] is None else f"{row['median_ms'] / 1000:.1f} s",
        "parts_text": ",".join("" if part is None else f"{part:.3f}" for part in row["parts"]),
        "others_interval": interval_text(row["others"]),
        "sensitivity_interval": interval_text(row["sensitivity"]),
        "specificity_interval": interval_text(row["specificity"]),
        "gold_interval": interval_text(row["gold"]),
        **{f"{name}_range": range_text(row[name]) for name in _WITH_RANGE},
    }


def concern_text(concern: Row) -> str:
    """A reason to talk in the reader's language."""
    # A snapshot from before facts were kept has the English sentence only.
    if "facts" not in concern:
        return str(concern["text"])
    return gettext(SENTENCES[concern["code"]]) % written(concern["facts"], number_text)


def number_text(value: float, decimals: int) -> str:
    """A number as the reader's language writes it."""
    # Rounded here: number_format cuts off the decimals that it does not show.
    return number_format(f"{value:.{decimals}f}", decimals, force_grouping=True)


def range_text(share: Row) -> str:
    """The interval in words; empty where there is none."""
    if share["low"] is None or share["high"] is None:
        return ""
    return f"{percent(share['low'])} – {percent(share['high'])}"


def interval_text(share: Row) -> str:
    """Value, low and high for the small plot in a cell; empty where one is missing."""
    numbers = [share["value"], share["low"], share["high"]]
    return "" if None in numbers else ",".join(f"{number:.3f}" for number in numbers)
