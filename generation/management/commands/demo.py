"""Show the main job on drawn scenes: from texts to a leaderboard."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from generation.demo.campaign import SEEDS
from generation.demo.checking import faults
from generation.demo.steps import Demo, NotADemoError, run

if TYPE_CHECKING:
    from generation.demo.people import Login

_MANUAL = """
Set up a demonstration in the database of DATABASE_URL and the folder of MEDIA_ROOT: load 40 pairs,
draw their images with a program, let simulated annotators judge about 80 % of them, freeze a
release, export it, score it with metrics that need no torch. What is there already is not done
again, so it can be stopped and run again.

    demo --serve     and then serve the site on this machine
    demo --check     and then look whether all is there; exit 1 names what is missing

Everything in it is drawn or simulated and says so. It refuses a database that holds other work.
`make demo` and `make demo-check` call it with a database of its own below .local/demo/.
"""

# What each of the visitor's accounts is for.
_FIRST_PAGES = {
    "annotator": "judge what is left: /annotate/",
    "reviewer": "settle disputes: /review/, look at the agreement: /agreement/",
    "admin": "everything: /prompts/, /generation/, /releases/",
}


class Command(BaseCommand):
    """`manage.py demo`."""

    help = _MANUAL
    # The first thing it does is to migrate.
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What follows the set-up."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        then = parser.add_mutually_exclusive_group()
        then.add_argument("--serve", action="store_true", help="serve the site afterwards")
        then.add_argument("--check", action="store_true", help="check what was made, and exit")
        parser.add_argument(
            "--seeds", default=SEEDS, metavar="N-M", help=f"images of each text and hand ({SEEDS})"
        )
        parser.add_argument("--port", type=int, default=8000, help="of --serve (default 8000)")

    def handle(self, **options: Any) -> None:
        """Do the steps, say what was done, then serve or check."""
        started = time.monotonic()
        demo = Demo(folder=settings.MEDIA_ROOT.parent, seeds=options["seeds"])
        logging.disable(logging.INFO)  # a newcomer reads the steps, not the log
        call_command("migrate", verbosity=0)
        self._make(demo)
        if options["check"]:
            self._check(demo)
        logging.disable(logging.NOTSET)
        self._say_logins(demo.logins)
        self.stdout.write(f"The demo is ready ({time.monotonic() - started:.0f} s).")
        if options["serve"]:
            self._serve(options["port"])

    def _make(self, demo: Demo) -> None:
        step_started = time.monotonic()
        try:
            for name, done in run(demo):
                seconds = time.monotonic() - step_started
                self.stdout.write(f"{name:<10} {done} ({seconds:.1f} s)")
                self.stdout.flush()
                step_started = time.monotonic()
        except NotADemoError as error:
            raise CommandError(str(error)) from error

    def _check(self, demo: Demo) -> None:
        found = faults(demo)
        if found:
            raise CommandError("The demo is not complete:\n" + "\n".join(f"- {f}" for f in found))
        self.stdout.write("Check      everything is there and answers")

    def _say_logins(self, logins: list[Login]) -> None:
        self.stdout.write("\nSign in at /accounts/login/ (accounts of this demo only):")
        for login in logins:
            where = _FIRST_PAGES[login.role]
            self.stdout.write(f"  {login.username:<16} {login.password:<24} {where}")
        self.stdout.write("Without signing in: /leaderboard/")
        self.stdout.write("")

    def _serve(self, port: int) -> None:
        self.stdout.write(f"Serving on http://127.0.0.1:{port}/ (Ctrl-C stops)")
        self.stdout.flush()
        # One process: SQLite has one writer. Threads are enough for some people at a time.
        call = ["-m", "gunicorn", "croc_annotate.wsgi", "--bind", f"127.0.0.1:{port}"]
        call += ["--workers", "1", "--threads", "8", "--no-control-socket"]
        os.execv(sys.executable, [sys.executable, *call])  # noqa: S606  # this Python, no shell
