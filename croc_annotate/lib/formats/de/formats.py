"""Numbers on German pages, written as in the files, the charts and the tables' sort values.

Django's own German format would write 0,5 beside the 0.5 of a chart or a download, and a comma in
an attribute that a script reads (``data-value``) would sort a table by its whole numbers only.
"""

from __future__ import annotations

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
