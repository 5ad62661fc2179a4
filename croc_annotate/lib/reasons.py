"""Why a number is undefined, in the reader's language.

The arithmetic knows no languages and gives its reasons in English; they are kept so in results
and go so to files and the API.  Pages translate them here, also those that hold numbers.
"""

from __future__ import annotations

import re
from functools import cache

from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop

WITH_NUMBERS = (
    gettext_noop("undefined in %(lost)s of %(draws)s draws"),
    gettext_noop("%(pairs)s independent pairs; an interval needs %(needed)s"),
    gettext_noop(
        "a category has only %(pairs)s independent pairs; an interval needs %(needed)s in each"
    ),
    gettext_noop("a category has only 1 independent pair; an interval needs %(needed)s in each"),
    gettext_noop("a category has no independent pairs; an interval needs %(needed)s in each"),
)
# Those of rooms that cannot name them to the translators themselves.
OTHERS = (
    gettext_noop("every draw gave the same value"),
    gettext_noop("every pair has the same value"),
    gettext_noop("one of the two has no value"),
    gettext_noop("the release has no images for it"),
)


def reason_text(reason: str) -> str:
    """A reason as a page shows it; what the catalogue does not know stays as it is."""
    for message in WITH_NUMBERS:
        if found := _pattern(message).fullmatch(reason):
            shown = {name: _number(digits) for name, digits in found.groupdict().items()}
            return gettext(message) % shown
    # The empty message is the catalogue's head.
    return gettext(reason) if reason else ""


@cache
def _pattern(message: str) -> re.Pattern[str]:
    """What a message looks like with whole numbers in its places."""
    return re.compile(re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>\\d+)", re.escape(message)))


def _number(digits: str) -> str:
    return number_format(digits, 0, force_grouping=True)
