"""What visitors of the demo read before they judge."""

from __future__ import annotations

CONSENT_VERSION = "demo-1"
CONSENT = """
This is a **demonstration** on your own machine. Your answers are stored in its database
(`.local/demo/`) and go nowhere else. You can stop at any time; deleting the folder deletes
everything.
"""

GUIDELINE_VERSION = "demo-1"
GUIDELINE = """
You see a text and a picture. **Does the picture show what the text says?**

- **Accept** if everything that the text says is in the picture. More may be there, too.
- **Reject** if anything that the text says is missing or different.
- **Cannot tell** if you really cannot decide, after looking twice.

Look closely at the marked words: a second text differs from this one there, and many pictures
show that one instead. Count, look left and right, look for what should be absent.

Whether a picture is beautiful does not matter. The pictures of this demo are drawn by a program
that makes mistakes on purpose, at a known rate.
"""
PRACTICE = {
    True: "The drawing shows exactly what the text says.",
    False: "The drawing program made its mistake here: the marked words do not fit.",
}
