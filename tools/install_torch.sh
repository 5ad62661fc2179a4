#!/usr/bin/env bash
# Install torch for tests: an index named by TORCH_INDEX, else a CPU build where pip offers
# one, else what pip gives (on Linux that is a CUDA build of gigabytes). Says which.
set -euo pipefail
python=$1
wanted=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' constraints.txt)
have=$("$python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true)
if [[ ${have%%+*} == "$wanted" ]]; then
  echo "torch: $have is installed"
elif [[ -n ${TORCH_INDEX:-} ]]; then
  echo "torch: $wanted from the index in TORCH_INDEX"
  "$python" -m pip install --quiet "torch==$wanted" --index-url "$TORCH_INDEX"
elif "$python" -m pip install --quiet "torch==$wanted+cpu" 2>/dev/null; then
  echo "torch: $wanted, a CPU build that pip offered"
else
  echo "torch: $wanted as pip gives it (set TORCH_INDEX to PyTorch's CPU index for a small one)"
  "$python" -m pip install --quiet "torch==$wanted"
fi
