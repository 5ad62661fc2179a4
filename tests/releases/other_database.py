"""Run as a program: the same world, frozen and exported on the database of DATABASE_URL."""

from __future__ import annotations

import os
import sys

import django
import time_machine

if __name__ == "__main__":
    os.sync = lambda: None
    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    from tests.releases.test_export_portable import WORDS, build

    call_command("migrate", verbosity=0)
    build()
    # Another day, another number of threads.
    with time_machine.travel("2031-07-08 09:10:11"):
        call_command("export_crochum", "--out", sys.argv[1], *WORDS, "--workers", "3")
