"""``python -m tests.benchmarks [NAME …] [--quick]``: run measurements and print their tables."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from tests.benchmarks.frame import RESULTS, Row, save, show


def names() -> list[str]:
    """All measurements: one file each."""
    return sorted(p.stem.removeprefix("bench_") for p in Path(__file__).parent.glob("bench_*.py"))


def main() -> int:
    """Run the named measurements, or all."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(names())
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "croc_annotate.settings")
    from tests import services

    services._prepare()
    import django

    django.setup()
    results: dict[str, list[Row]] = {}
    for name in arguments.names or names():
        module = importlib.import_module(f"tests.benchmarks.bench_{name}")
        results[name] = module.run(quick=arguments.quick)
        print(f"\n{name}\n{show(results[name])}", flush=True)
        save({name: results[name]})
    print(f"\nWritten to {RESULTS.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
