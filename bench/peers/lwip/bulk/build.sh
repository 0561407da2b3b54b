#!/bin/sh
# build.sh DIRECTORY: fetches lwIP as ../build.sh does, builds bulk.c with it for each size of packets and buffers as
# DIRECTORY/bulk-LINK-BUFFER and says its version. On failure the last line on stderr is the reason.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sh "$here/../build.sh" "$1" | tail -n 1)
cd "$1"
source=$(echo lwip-*/src)

# What it is called, the MTU, the buffer in bytes, and what else is defined.
build() {
    target=$1 mtu=$2 bytes=$3
    shift 3
    [ "$target" -nt "$here/bulk.c" ] && [ "$target" -nt "$here/lwipopts.h" ] && return
    cc -O3 -flto -DNDEBUG -DBULK_MTU="$mtu" -DBULK_BUFFER="$bytes" "$@" -I"$here" -I"$source/include" -Inone \
        -o "$target" "$here/bulk.c" "$source"/core/*.c "$source"/core/ipv4/*.c >log 2>&1 || {
        echo "cc failed: $(tail -n 1 log)" >&2
        exit 1
    }
}

for buffer in 64K:65535 1M:1048576; do
    for link in 1500 9000 65535; do
        build "bulk-$link-${buffer%:*}" "$link" "${buffer#*:}"
    done
    build "bulk-super-${buffer%:*}" 65535 "${buffer#*:}" -DBULK_NO_CHECKSUMS
done
echo "$version"
