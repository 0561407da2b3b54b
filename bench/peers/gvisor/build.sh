#!/bin/sh
# build.sh DIRECTORY [PROGRAM]: fetches gVisor's netstack as go.mod names it, builds with it the program in the folder
# of that name, or without a name the one next to this, as DIRECTORY/PROGRAM or DIRECTORY/bench, and says its
# version. On failure the last line on stderr is the reason.
set -eu
mkdir -p "$1"
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || {
    echo 'no go: install Go 1.23 or later' >&2
    exit 1
}
cd "$(dirname "$0")"
if ! go build -o "$1/${2:-bench}" "./${2:-}" >"$1/log" 2>&1; then
    echo "go build failed: $(tail -n 1 "$1/log")" >&2
    exit 1
fi
sed -n 's/^require gvisor.dev\/gvisor //p' go.mod
