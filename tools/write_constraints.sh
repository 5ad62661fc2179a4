#!/usr/bin/env bash
# Pin what is installed and tested, without this project itself and without local versions.
set -euo pipefail
python=$1
{
  echo "# The versions that were tested together. \`make constraints\` writes this file."
  "$python" -m pip freeze --exclude-editable --exclude pip --exclude setuptools \
    | grep -v ' @ ' | sed 's/+cpu$//' | LC_ALL=C sort -f
} > constraints.txt
