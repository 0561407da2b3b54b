"""One side of flows that neither side reads: stall.py near|far ADDRESS FOLDER.

Each side sends until its kernel finds the windows of all flows closed. One more flow loads a file beside
them, and then there is FOLDER/stalled-SIDE. Once there is FOLDER/go, by the number of a flow: each side ends its half (1), the far side resets (2), the near
side resets (3). Whoever is reset learns it without a read. Then the others are read to their end, and what
came is written to FOLDER/got-SIDE.
"""

import errno, json, os, select, socket, struct, subprocess, sys, time

FLOWS = 16
side, address, folder = sys.argv[1:]
text = bytes(i * 7 % 251 for i in range(251 * 2000))


def mark(name, value=None):
    with open(f"{folder}/{name}-{side}.new", "w") as file:
        json.dump(value, file)
    os.rename(f"{folder}/{name}-{side}.new", f"{folder}/{name}-{side}")


def flows():
    global server
    if side == "near":
        for number in range(FLOWS):
            flow = socket.create_connection((address, 9))
            flow.sendall(bytes([number]))
            yield number, flow
        return
    server = socket.create_server((address, 9), backlog=FLOWS)
    mark("listens")
    for _ in range(FLOWS):
        flow, _ = server.accept()
        yield flow.recv(1)[0], flow


def fill(flow, sent):
    try:
        while True:
            sent += flow.send(text[sent % 251 :][: 251 * 1000])
    except BlockingIOError:
        return sent


def closed_windows():
    where = ["dst", f"{address}:9"] if side == "near" else ["src", f"{address}:9"]
    return subprocess.run(["ss", "-tnHo", *where], stdout=subprocess.PIPE, text=True).stdout.count("persist")


def reset(flow):
    flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    flow.close()


def read(flows):
    got, poll, by_fd = dict.fromkeys(flows, 0), select.poll(), {}
    for number, flow in flows.items():
        poll.register(flow, select.POLLIN)
        by_fd[flow.fileno()] = number, flow
    while by_fd:
        for fd, _ in poll.poll():
            number, flow = by_fd[fd]
            part = flow.recv(251 * 1000)
            assert text[got[number] % 251 :].startswith(part), f"{number}: other bytes at {got[number]}"
            got[number] += len(part)
            if not part:
                poll.unregister(fd)
                del by_fd[fd]
    return got


flows = dict(flows())
sent = dict.fromkeys(flows, 0)
for flow in flows.values():
    flow.setblocking(False)
while closed_windows() < FLOWS:
    sent = {number: fill(flow, sent[number]) for number, flow in flows.items()}
    time.sleep(0.05)
if side == "near":
    with socket.create_connection((address, 9)) as beside:
        assert beside.makefile("rb").read() == text
else:
    with server.accept()[0] as beside:
        beside.sendall(text)
mark("stalled", sent)
while not os.path.exists(f"{folder}/go"):
    time.sleep(0.05)
own, others = (3, 2) if side == "near" else (2, 3)
for number, flow in flows.items():
    if number % 4 == own:
        reset(flow)
    elif number % 4 == 1:
        flow.shutdown(socket.SHUT_WR)
for number, flow in flows.items():
    if number % 4 == others:
        poll = select.poll()
        poll.register(flow, 0)
        poll.poll()
        error = flow.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        assert error == errno.ECONNRESET, f"{number}: {os.strerror(error)}"
left = {number: flow for number, flow in flows.items() if number % 4 < 2}
for number, flow in left.items():
    if number % 4 == 0:
        flow.shutdown(socket.SHUT_WR)
mark("sent", {number: sent[number] for number in left})
mark("got", read(left))
