"""Numbers as the tables of the pages show them."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from croc_annotate.agreement.wording import COUNTS, NUMBERS, rule_label
from croc_annotate.lib.reasons import reason_text

Row = dict[str, Any]

# A bootstrap over fewer pairs than this knows too little of how much pairs differ.
FEW_PAIRS = 10
SHARES = {"raw_agreement", "prevalence_accept", "unsure_share"}


def report_table(rows: Row) -> list[Row]:
    """Rows of an agreement table: label, counts and cells with value, interval or reason."""
    return [{"label": label, "cells": report_cells(row)} for label, row in rows.items()]


def has_few_pairs(rows: Row) -> bool:
    """Whether an interval of the table rests on too few contrast pairs."""
    found = (row["intervals"]["raw_agreement"] for row in rows.values())
    return any(one["low"] is not None and one["pairs"] < FEW_PAIRS for one in found)


def reasons_in(rows: Row) -> str:
    """Every reason why something is undefined, once each, with where."""
    places: dict[str, list[str]] = {}
    for label, row in rows.items():
        for name, reason in row["undefined"].items():
            title = str(NUMBERS[name][0]) if name in NUMBERS else name
            places.setdefault(f"{title} – {reason_text(reason)}", []).append(label)
    everywhere = _("everywhere")
    return "; ".join(
        f"{what} ({', '.join(labels) if len(labels) < len(rows) else everywhere})"
        for what, labels in places.items()
    )


def report_cells(row: Row) -> list[Row]:
    """One cell per number; undefined ones have a reason instead of a text."""
    cells = [_cell(name, row) for name in NUMBERS]
    return cells + [
        {"name": name, "value": row[name], "text": f"{row[name]:,}", "reason": ""}
        for name in COUNTS
    ]


def _cell(name: str, row: Row) -> Row:
    value = row[name]
    if value is None:
        reason = reason_text(row["undefined"].get(name, ""))
        return {"name": name, "value": "", "text": "", "reason": reason}
    interval = row["intervals"].get(name, {})
    low, high = interval.get("low"), interval.get("high")
    cell = {"name": name, "value": f"{value:.6f}", "text": text_of(name, value), "reason": ""}
    if low is not None:
        cell["range"] = f"{text_of(name, low)} – {text_of(name, high)}"
        if interval["pairs"] < FEW_PAIRS:
            cell["few"] = interval["pairs"]
        cell["spark"] = f"{value:.4f},{low:.4f},{high:.4f}"
        lost = interval.get("undefined_draws")
        cell["lost"] = lost if lost else ""
    elif interval.get("reason"):
        cell["no_range"] = reason_text(interval["reason"])
    return cell


def text_of(name: str, value: float) -> str:
    """Shares as per cent, coefficients with two decimals."""
    return percent(value) if name in SHARES else f"{value:.2f}".replace("-", "−")


def percent(value: float | None, digits: int = 0) -> str:
    """A share as per cent; empty where it is not known."""
    return "" if value is None else f"{100 * value:.{digits}f} %"


def rule_row(row: Row, categories: list[str]) -> Row:
    """A rule with its errors in words and its verified images by category."""
    found = {
        **row,
        "label": rule_label(row),
        "cells": [row["by_category"].get(name) for name in categories],
    }
    if row["refused"]:
        return found
    gold = row["error_gold"]
    return {
        **found,
        "model_text": percent(row["error_model"]["value"], 1),
        "gold_text": percent(gold["value"], 1),
        "gold_range": f"{percent(gold['low'], 1)} – {percent(gold['high'], 1)}",
    }
