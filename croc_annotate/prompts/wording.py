"""What the bank's rules say, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext

if TYPE_CHECKING:
    from croc_annotate.prompts.rules import Problem


def in_words(problem: Problem) -> str:
    """What is wrong, without where it is."""
    if not problem.template:
        return problem.message
    values = dict(problem.values)
    if "kind" in values:
        values["kind"] = gettext(str(values["kind"]))
    return gettext(problem.template) % values
