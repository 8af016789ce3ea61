#!/usr/bin/env bash
# The real Realtime clients of tests/interop: a Python environment and node_modules.
#
# Each has for a stamp the file that says what is in it, so the second time compares two files.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

wanted=tests/interop/requirements.txt
venv=$PWD/.venv-interop
if ! { cmp -s "$wanted" "$venv/.installed" && "$venv/bin/python" -c '' 2>/dev/null; }; then
    rm -rf "$venv"
    .venv/bin/python -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
        --prefer-binary --requirement "$wanted"
    cp "$wanted" "$venv/.installed"
fi

cd tests/interop/node
if cmp -s package-lock.json node_modules/.installed; then
    exit 0
fi
if ! command -v npm >/dev/null; then
    echo "The tests of JavaScript clients are left out: they need node 20 or newer, with npm." >&2
    if [[ -n ${CI:-} ]]; then exit 1; fi
    exit 0
fi
npm ci --silent
cp package-lock.json node_modules/.installed
