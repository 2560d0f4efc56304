#!/bin/sh
# Re-locks requirements/*.txt from requirements/*.in: every version exact, every file of it by hash, for all supported
# Pythons and platforms at once. Versions already locked stay; `make lock ARGS=--upgrade` moves them.
set -eu
cd "$(dirname "$0")/.."

uv=$(command -v .venv/bin/uv || command -v uv) || {
    echo "make lock needs uv, which nothing else here does: .venv/bin/python -m pip install uv" >&2
    exit 1
}

# The hashes must be those of the registry's own files: local wheels and a machine's settings must not leak in.
unset UV_INDEX UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_CONSTRAINT UV_OVERRIDE
# Extras stay in the names: pip before 23.3 does not apply the pin of `coverage` to a package that asks for `coverage[toml]`.
lock() {
    "$uv" pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-strip-extras --no-header "$@"
}
lock "$@" requirements/runtime.in --output-file requirements/runtime.txt
lock "$@" requirements/build.in --constraint requirements/runtime.txt --output-file requirements/build.txt
lock "$@" requirements/dev.in --constraint requirements/runtime.txt --constraint requirements/build.txt \
    --output-file requirements/dev.txt
lock "$@" requirements/ray.in --constraint requirements/runtime.txt --constraint requirements/dev.txt \
    --output-file requirements/ray.txt
# Of the reference operator, which has an environment of its own; what both have is of one version.
lock "$@" examples/operator/requirements.in --constraint requirements/runtime.txt \
    --output-file examples/operator/requirements.txt
# Of the page: Node where the machine has none, and the browser driver of its tests.
for list in requirements requirements-tests; do
    lock "$@" examples/operator/page/$list.in --output-file examples/operator/page/$list.txt
done

for file in requirements/runtime.txt requirements/build.txt requirements/dev.txt requirements/ray.txt \
    examples/operator/requirements.txt examples/operator/page/requirements.txt examples/operator/page/requirements-tests.txt; do
    { echo "# Locked by \`make lock\` from $(basename "$file" .txt).in; not edited by hand."; cat "$file"; } >"$file.new"
    mv "$file.new" "$file"
done
