"""What the charts of the agreement pages are drawn from."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from croc_annotate.agreement.wording import rule_label
from croc_annotate.lib.reasons import reason_text

Row = dict[str, Any]

_SERIES = {"krippendorff_alpha": "α", "gwet_ac1": "AC1", "raw_agreement": "raw"}
# Accuracy of the raters behind the reference lines of the prevalence plot.
_SKILLS = (0.8, 0.9, 0.95)
# The most points that carry their names.
_NAMED = 16


def interval_chart(rows: Row) -> Row:
    """α, AC1 and raw agreement of each group with their intervals."""
    marks = []
    for label, row in rows.items():
        for name, series in _SERIES.items():
            interval = row["intervals"][name]
            marks.append(
                {
                    "label": label,
                    "value": row[name],
                    "low": interval["low"],
                    "high": interval["high"],
                    "n": row["items_with_two"],
                    "series": series,
                    "note": reason_text(row["undefined"].get(name, "")) or None,
                    "href": None,
                }
            )
    return {
        "x_label": _("Agreement"),
        "domain": [-0.2, 1],
        "reference": 0,
        "format": ".2f",
        "rows": marks,
    }


def prevalence_chart(rows: Row) -> Row:
    """α of each group against its share of accepts, beside what equally skilled raters get."""
    points = [
        {
            "x": row["prevalence_accept"],
            "y": row["krippendorff_alpha"],
            "label": label,
            "series": "α",
            "n": row["items_with_two"],
            "href": None,
        }
        for label, row in rows.items()
        if row["krippendorff_alpha"] is not None
    ]
    return {
        "x": {"label": _("Share of accepts"), "domain": [0, 1], "format": ".0%"},
        "y": {"label": _("Krippendorff's α"), "domain": [-0.2, 1], "format": ".2f"},
        "points": points,
        "lines": [
            {"label": _("raters %(skill)s right") % {"skill": f"{skill:.0%}"}, "points": line}
            for skill in _SKILLS
            if (line := skill_line(skill))
        ],
    }


def skill_line(skill: float) -> list[list[float]]:
    """Share of accepts and expected α of raters who are right with probability ``skill``."""
    raw = skill**2 + (1 - skill) ** 2
    line = []
    for step in range(1, 50):
        matches = step / 50
        accepts = matches * skill + (1 - matches) * (1 - skill)
        chance = accepts**2 + (1 - accepts) ** 2
        line.append([round(accepts, 4), round((raw - chance) / (1 - chance), 4)])
    return line


def time_chart(weeks: Row) -> Row:
    """Agreement week by week."""
    series = []
    for name, title in _SERIES.items():
        points = [
            {
                "x": week,
                "y": row[name],
                "low": row["intervals"][name]["low"],
                "high": row["intervals"][name]["high"],
                "n": row["items_with_two"],
            }
            for week, row in sorted(weeks.items())
        ]
        series.append({"label": title, "points": points})
    return {
        "x": {"label": _("Week from"), "type": "time"},
        "y": {"label": _("Agreement"), "domain": [-0.2, 1], "format": ".2f"},
        "series": series,
    }


def pair_chart(pairs: Row) -> Row:
    """Raw agreement of every two people; the diagonal stays empty."""
    return {
        "rows": pairs["people"],
        "cols": pairs["people"],
        "values": pairs["raw_agreement"],
        "n": pairs["common"],
        "domain": [0.5, 1],
        "scale": "sequential",
        "format": ".2f",
        "x_label": "",
        "y_label": "",
    }


def days_chart(timeline: list[Row]) -> Row:
    """Judgements of each day, by verdict."""
    names = ("accept", "reject", "unsure")
    return {
        "x": {"label": _("Day"), "type": "time"},
        "y": {"label": _("Judgements"), "domain": None, "format": ","},
        "series": [
            {"label": name, "points": [{"x": row["day"], "y": row[name]} for row in timeline]}
            for name in names
        ],
    }


def skill_chart(rows: list[Row]) -> Row:
    """Sensitivity against specificity, a point a person."""
    points = [
        {
            "x": row["specificity"]["value"],
            "y": row["sensitivity"]["value"],
            "label": row.get("name", row["person"]),
            "series": _("to talk to") if row["concerns"] else _("others"),
            "n": row["judgements"],
            "href": row.get("href"),
            # Among many people only those to talk to are named; few are all named.
            "unnamed": len(rows) > _NAMED and not row["concerns"],
        }
        for row in rows
        if row["sensitivity"]["value"] is not None and row["specificity"]["value"] is not None
    ]
    return {
        "x": {"label": _("Specificity"), "domain": None, "format": ".0%"},
        "y": {"label": _("Sensitivity"), "domain": None, "format": ".0%"},
        "points": points,
        "lines": [],
    }


def rules_chart(rows: list[Row]) -> Row:
    """Estimated label error against verified images, one point a rule and source."""
    sources = (("error_model", _("from the model")), ("error_gold", _("from gold")))
    points: list[Row] = []
    named: set[str] = set()
    for source, title in sources:
        for row in rows:
            if not row["verified"] or row[source]["value"] is None:
                continue
            points.append(
                {
                    "x": row["verified"],
                    "y": row[source]["value"],
                    "label": rule_label(row),
                    "series": title,
                    "n": row["verified"],
                    "href": None,
                    # Both points of a rule stand above each other: one name will do.
                    "unnamed": row["title"] in named,
                }
            )
            named.add(row["title"])
    return {
        "x": {"label": _("Verified images"), "domain": None, "format": ","},
        "y": {"label": _("Estimated wrong labels"), "domain": None, "format": ".1%"},
        "points": points,
        "lines": [],
    }


def pace_chart(counts: list[int], bin_ms: int) -> Row:
    """A person's answers by active time, in bins of ``bin_ms``."""
    return {
        "x_label": _("Active seconds"),
        "format": ".1f",
        "bins": [
            {"x0": k * bin_ms / 1000, "x1": (k + 1) * bin_ms / 1000, "n": n}
            for k, n in enumerate(counts)
        ],
        "marks": [],
    }
