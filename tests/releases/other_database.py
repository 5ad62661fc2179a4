"""Run as a program: the same world, frozen and exported on the database of DATABASE_URL."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import django
import time_machine

if __name__ == "__main__":
    os.sync = lambda: None
    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.utils import translation

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    from tests.releases.test_export_portable import EXPORTS, build

    call_command("migrate", verbosity=0)
    build()
    # The clock as C code sees it: moved too where the test could compile that.
    days = {"c": datetime.now(UTC).date().isoformat()} if "CLOCK_SHIM_FILE" in os.environ else {}
    # Another day, another language, another number of threads.
    with time_machine.travel("2035-07-08 09:10:11"), translation.override("de"):
        days["python"] = datetime.now(UTC).date().isoformat()
        for name, words in EXPORTS.items():
            out = str(Path(sys.argv[1]) / name)
            call_command("export_crochum", "--out", out, *words, "--workers", "3")
    print(json.dumps(days))
