#!/bin/sh
# build.sh DIRECTORY: fetches Debian's source package of lwIP into DIRECTORY, builds bench.c with it as
# DIRECTORY/bench and says its version. On failure the last line on stderr is the reason.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

skip() {
    echo "$1" >&2
    exit 1
}

# The machine's own sources, asked for source packages; its configuration stays unchanged.
fetch() {
    for tool in apt-get dpkg-source; do
        command -v $tool >/dev/null || skip "no $tool (Debian's package dpkg-dev brings dpkg-source)"
    done
    rm -rf sources lists cache lwip-*
    mkdir -p sources lists/partial cache/archives/partial
    for list in /etc/apt/sources.list.d/*.sources; do
        grep -qs debian-archive "$list" && sed 's/^Types:.*/Types: deb-src/' "$list" >"sources/${list##*/}"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        grep -qs ' main' "$list" && sed -n 's/^deb /deb-src /p' "$list" >"sources/$(basename "$list" .list).list"
    done
    set -- -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$PWD/sources" \
        -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache"
    apt-get "$@" update >log 2>&1 || skip "apt-get update failed: $(tail -n 1 log)"
    apt-get "$@" source lwip >log 2>&1 || skip "apt-get source failed: $(tail -n 1 log)"
    ls -d lwip-*/ >/dev/null 2>&1 || skip 'apt-get source left no directory'
}

command -v cc >/dev/null || skip 'no C compiler: install gcc'
ls -d lwip-*/ >/dev/null 2>&1 || fetch
source=$(echo lwip-*/src)
mkdir -p none/arch
: >none/arch/cc.h # the compiler is known without
[ bench -nt "$here/bench.c" ] && [ bench -nt "$here/lwipopts.h" ] || cc -O3 -flto -DNDEBUG -I"$here" -I"$source/include" -Inone -o bench \
    "$here/bench.c" "$source"/core/*.c "$source"/core/ipv4/*.c >log 2>&1 || skip "cc failed: $(tail -n 1 log)"
sed -n '1s/.*(\(.*\)).*/\1/p' "$source/../debian/changelog"
