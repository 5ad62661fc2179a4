#!/usr/bin/env bash
# ruff's security rules and pip's own check, which need no network; then known holes of what is
# installed, by pip-audit. 0: all clean; 1: a finding; 2: the holes could not be looked up.
set -uo pipefail
python=$1
bin=$(dirname "$python")
"$bin/ruff" check --quiet --select S . || exit 1
"$python" -m pip check || exit 1
# "IDENTIFIER  # reason": a hole that does not touch us, or that has no mended version yet.
mapfile -t known < <(sed -n 's/^\([A-Z][A-Za-z0-9-]*\) \+# .\+$/--ignore-vuln=\1/p' .ci/audit-exceptions.txt)
found=$(mktemp)
trap 'rm -f "$found"' EXIT
"$python" -m pip install --quiet pip-audit 2>/dev/null
"$bin/pip-audit" --skip-editable --progress-spinner=off --format=json --output="$found" "${known[@]}"
# A mirror without the database answers "not found" for each package, and pip-audit ends with 0.
exec "$python" - "$found" <<'PYTHON'
import json
import sys

try:
    with open(sys.argv[1]) as file:
        packages = json.load(file)["dependencies"]
except (OSError, ValueError):
    print("audit: pip-audit is not there or gave no answer: no known hole was looked up")
    sys.exit(2)
# A local build ("2.6+cpu") has no entry of its own.
unknown = [p["name"] for p in packages if "skip_reason" in p and "+" not in p["skip_reason"]]
holes = [(p["name"], p["version"], v) for p in packages for v in p.get("vulns", [])]
for name, version, hole in holes:
    print(f"audit: {name} {version}: {hole['id']}, mended in {hole['fix_versions'] or 'none yet'}")
if unknown:
    print(f"audit: {len(unknown)} of {len(packages)} packages are not in the database reached here:")
    print("audit: they were NOT looked up:", " ".join(unknown[:8]), "…" if unknown[8:] else "")
print(f"audit: {len(holes)} known holes in {len(packages) - len(unknown)} packages looked up")
sys.exit(1 if holes else 2 if unknown else 0)
PYTHON
