"""What the release tests share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_flush_of_the_whole_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An export ends with `sync`, which waits for whatever else the machine writes."""
    monkeypatch.setattr(os, "sync", lambda: None)
