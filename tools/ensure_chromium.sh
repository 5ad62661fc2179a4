#!/usr/bin/env bash
# Find Chromium for the browser tests, or install it: apt on Debian as root, Playwright's own
# elsewhere. Without one the browser tests are skipped, and this line says so.
set -uo pipefail
python=$1
if [[ -n ${CHROMIUM:-} ]] || command -v chromium >/dev/null; then
  exit 0
fi
if command -v apt-get >/dev/null && [[ $(id -u) == 0 ]]; then
  echo "chromium: installing Debian's"
  apt-get update -qq >/dev/null 2>&1
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium fonts-dejavu-core >/dev/null 2>&1 && exit 0
fi
if "$python" -c 'from playwright.sync_api import sync_playwright as s
with s() as p:
    import os, sys; sys.exit(not os.path.exists(p.chromium.executable_path))' 2>/dev/null; then
  exit 0
fi
echo "chromium: installing Playwright's own"
"$python" -m playwright install chromium >/dev/null 2>&1 && exit 0
echo "chromium: none found and none could be installed, so the browser tests are skipped"
