# What the scripts that measure over `whimbrel link` share. To be sourced; needs root.
#
# A *course* is a client's namespace and a server's, with a path between them:
#
#   client -- whim-near TUN -- [whimbrel link] -- whim-far TUN -- server
#
# The kernel's TCP talks over it directly, from 10.1.0.1 to 10.1.0.2. A Whimbrel host in either
# namespace has an interface of its own, from which the kernel forwards: 10.2.0.2 and 10.3.0.2.

# The program, and a folder that goes with the script.
program=${program:-target/release/whimbrel}
folder=$(mktemp -d)
declare -A links=() servers=() captures=()
# One packet of a hundred later than this, and the run compares with nothing: microseconds.
LATE_US=1000
# Of the real-time scheduler's: the path comes before both ends, and these before whatever else runs here.
PATH_PRIORITY=20 END_PRIORITY=10
# Of each packet: IPv4 and TCP headers with all options.
CAPTURED_BYTES=120

# Everything that was started ends, and everything that was made goes.
clear_up() {
    local course
    for course in "${!links[@]}"; do close_course "$course"; done
    rm -rf "$folder"
}
trap clear_up EXIT

client() { echo "whim-path-c-$$-$1"; }
server() { echo "whim-path-s-$$-$1"; }
inside() { ip netns exec "$@"; }

# open_course NAME SEED KEYS...: namespaces, and a path that is like this in both directions. Of keys for
# one direction alone: BACK=KEYS.
open_course() {
    local name=$1 seed=$2 net
    shift 2
    for net in "$(client "$name")" "$(server "$name")"; do
        ip netns add "$net"
        ip -n "$net" link set lo up
        inside "$net" sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.ip_forward=1 \
            net.ipv4.tcp_rmem='4096 131072 67108864' net.ipv4.tcp_wmem='4096 16384 67108864'
    done
    # Before all else that wants the processor: the path is the measure of the others.
    chrt --fifo "$PATH_PRIORITY" "$program" link "tun:near,netns=$(client "$name"),addr=10.1.0.1/24" \
        "tun:far,netns=$(server "$name"),addr=10.1.0.2/24" "$@" ${BACK:+--back "$BACK"} \
        --seed "$seed" --json >"$folder/link-$name" 2>"$folder/errors-$name" &
    links[$name]=$!
    await ip -n "$(client "$name")" -br address show near up
    await ip -n "$(server "$name")" -br address show far up
    inside "$(client "$name")" ethtool -K near gso off gro off tso off 2>/dev/null || true
    inside "$(server "$name")" ethtool -K far gso off gro off tso off 2>/dev/null || true
    ip -n "$(client "$name")" route add 10.3.0.0/24 via 10.1.0.2
    ip -n "$(server "$name")" route add 10.2.0.0/24 via 10.1.0.1
}

# Until the command prints an address, ten seconds at most.
await() {
    local turn
    for ((turn = 0; turn < 100; turn++)); do
        if "$@" 2>/dev/null | grep -q '10\.'; then return; fi
        sleep 0.1
    done
    echo "it did not come: $*" >&2
    return 1
}

# serve NAME kernel|whimbrel OPTIONS...: a sink at the far end.
serve() {
    local name=$1 stack=$2 at wire
    shift 2
    case $stack in
        kernel) at=10.1.0.2 wire=kernel: ;;
        whimbrel) at=10.3.0.2 wire=tun:whim1,addr=10.3.0.2/24,host=10.3.0.1,offload=off ;;
    esac
    ip netns exec "$(server "$name")" chrt --fifo "$END_PRIORITY" "$program" serve -w "$wire" -l "$at:9" --sink --quiet "$@" \
        2>>"$folder/errors-$name" &
    servers[$name]=$!
    # It is there once a transfer of one byte passes; the path may lose what it is asked with.
    local turn
    for ((turn = 0; turn < 20; turn++)); do
        if send "$name" "$stack" reno -n 1 --timeout 2s >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    echo "no server: $(cat "$folder/errors-$name")" >&2
    return 1
}

# send NAME kernel|whimbrel ALGORITHM OPTIONS...: a transfer to it; the document of `bulk --json`. An empty
# ALGORITHM is whatever the stack begins with.
send() {
    local name=$1 stack=$2 algorithm=$3
    shift 3
    case $stack in
        kernel)
            sender "$name" bulk send 10.1.0.2:9 --peer plain -w kernel: \
                ${algorithm:+-C "$algorithm"} --json --no-tui "$@"
            ;;
        whimbrel)
            sender "$name" bulk send 10.3.0.2:9 --peer plain \
                -w tun:whim0,addr=10.2.0.2/24,host=10.2.0.1,offload=off ${algorithm:+-C "$algorithm"} \
                --json --no-tui "$@"
            ;;
    esac
}

sender() { inside "$(client "$1")" chrt --fifo "$END_PRIORITY" "$program" "${@:2}"; }

# capture NAME FILE: what passes the near end from now on, headers alone, until the course is closed.
capture() {
    local name=$1 file=$2 turn
    # Not `inside`, a function, whose process would be told to end instead of the capture.
    ip netns exec "$(client "$name")" dumpcap -q -i near -s "$CAPTURED_BYTES" -w "$file" 2>/dev/null &
    captures[$name]=$!
    for ((turn = 0; turn < 50; turn++)); do
        if [[ -s $file ]]; then return; fi
        sleep 0.1
    done
    echo "no capture: $file" >&2
    return 1
}

# Ends a course; afterwards `$folder/link-NAME` tells what the path did.
close_course() {
    local name=$1
    if [[ -n ${servers[$name]:-} ]]; then
        kill -TERM "${servers[$name]}" 2>/dev/null || true
        wait "${servers[$name]}" 2>/dev/null || true
        unset "servers[$name]"
    fi
    if [[ -n ${captures[$name]:-} ]]; then
        kill -TERM "${captures[$name]}" 2>/dev/null || true
        wait "${captures[$name]}" 2>/dev/null || true
        unset "captures[$name]"
    fi
    if [[ -n ${links[$name]:-} ]]; then
        kill -TERM "${links[$name]}" 2>/dev/null || true
        wait "${links[$name]}" 2>/dev/null || true
        unset "links[$name]"
    fi
    ip netns del "$(client "$name")" 2>/dev/null || true
    ip netns del "$(server "$name")" 2>/dev/null || true
}

# Of a course that is closed: microseconds by which one packet of a hundred was late.
lateness() { json "$folder/link-$1" "late_us" "p99"; }
was_late() { (($(lateness "$1") > LATE_US)); }

# json FILE KEY...: what stands there in a document.
json() {
    python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[int(key) if key.isdigit() else key]
print(value)' "$@"
}

# Of the numbers on the standard input.
median() { sort -g | awk '{ all[NR] = $1 } END { print NR ? all[int((NR + 1) / 2)] : "-" }'; }
mean() { awk '{ sum += $1 } END { printf "%.2f\n", NR ? sum / NR : 0 }'; }

machine() {
    printf '%s, %s processors, Linux %s' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -r)"
}
