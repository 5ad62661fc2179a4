"""The secret key of an embedded installation: made once, kept in a private file."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_or_create_secret_key(path: Path) -> str:
    """Return the key in ``path``, made on first use with mode 0600.

    Two processes that start at once agree: the file is created exclusively, and who comes
    second reads what the first wrote.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    key = secrets.token_urlsafe(50)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    return path.read_text(encoding="ascii").strip()
