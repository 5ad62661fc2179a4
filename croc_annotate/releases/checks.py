"""One question about an export and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_SHOWN = 5


@dataclass
class Check:
    """One question about an export: how many things were looked at, and what is wrong."""

    name: str
    looked_at: int = 0
    faults: list[str] = field(default_factory=list)
    n_faults: int = 0
    note: str = ""

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return self.n_faults == 0

    def fault(self, text: str) -> None:
        """Note a fault; the first few are kept in words."""
        self.n_faults += 1
        if len(self.faults) < _SHOWN:
            self.faults.append(text)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "name": self.name, "ok": self.ok, "looked_at": self.looked_at,
            "faults": self.n_faults, "first_faults": self.faults, "note": self.note,
        }  # fmt: skip
