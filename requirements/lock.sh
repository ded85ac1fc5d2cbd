#!/usr/bin/env bash
# Writes the pinned requirements, with hashes, for every Python and platform that we support.
#   build.txt  what builds our package     run.txt  what it runs on     test.txt  that and what the gate needs
set -euo pipefail
cd "$(dirname "$0")/.."

throwaway=$(mktemp -d)
trap 'rm -rf "$throwaway"' EXIT
"${1:-python3}" -m venv "$throwaway"
"$throwaway/bin/pip" install --quiet --disable-pip-version-check uv

pin() { # pin FILE ARG...
  "$throwaway/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
    --no-emit-index-url --no-emit-find-links --output-file "requirements/$1" "${@:2}"
}

"$throwaway/bin/python" -c '
import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")
' >"$throwaway/build.in"
pin build.txt --no-annotate "$throwaway/build.in"
pin run.txt pyproject.toml
pin test.txt --extra test --constraints requirements/run.txt pyproject.toml
