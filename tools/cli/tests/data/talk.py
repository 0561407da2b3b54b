"""An end of connections of the kernel's: talk.py serve|connect ADDRESS PORT WORD... -- STEP...

Words: sndbuf=N rcvbuf=N (SO_SNDBUF, SO_RCVBUF), cc=NAME (TCP_CONGESTION), backlog=N, accept-after=SECONDS,
conns=N, gap=SECONDS between them, patience=SECONDS of connect(), limit=SECONDS of the program.
Each connection runs the steps in a thread: send=N, recv=N, rounds=TIMES:RECV:SEND, talks=TIMES:WRITES*SEND:RECV,
wait=SECONDS, drain (until all is acknowledged), ss (prints the sockets), shut, end (reads until FIN).
"""
import fcntl
import os
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

mode, address, port, *words = sys.argv[1:]
place = words.index('--')
steps = [word.partition('=')[::2] for word in words[place + 1:]]
options = dict(word.partition('=')[::2] for word in words[:place])
lock = threading.Lock()


def say(text):
    with lock:
        print(text, flush=True)


def configure(one):
    for name, option in (('sndbuf', socket.SO_SNDBUF), ('rcvbuf', socket.SO_RCVBUF)):
        if name in options:
            one.setsockopt(socket.SOL_SOCKET, option, int(options[name]))
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options['cc'].encode())


def receive(one, count):
    while count > 0:
        data = one.recv(min(count, 1 << 20))
        if not data:
            raise OSError('end of text')
        count -= len(data)


def send(one, count):
    block = b'x' * 65536
    while count:
        count -= one.send(block[:min(count, len(block))])


def drain(one):
    while struct.unpack('i', fcntl.ioctl(one, termios.TIOCOUTQ, bytes(4)))[0]:
        time.sleep(0.005)


def rounds(one, value):
    times, there, back = map(int, value.split(':'))
    for _ in range(times):
        receive(one, there)
        one.sendall(b'x' * back)


def talks(one, value):
    times, writes, back = value.split(':')
    count, size = map(int, writes.split('*'))
    for _ in range(int(times)):
        for _ in range(count):
            one.sendall(b'x' * size)
        receive(one, int(back))


STEPS = {
    'send': lambda one, value: send(one, int(value)),
    'recv': lambda one, value: receive(one, int(value)),
    'rounds': rounds,
    'talks': talks,
    'wait': lambda one, value: time.sleep(float(value)),
    'drain': lambda one, _: drain(one),
    'ss': lambda one, _: say(subprocess.run(['ss', '-tinmoe'], capture_output=True, text=True).stdout),
    'shut': lambda one, _: one.shutdown(socket.SHUT_WR),
    'end': lambda one, _: receive(one, 1 << 62),
}


def talk(one):
    try:
        for name, value in steps:
            STEPS[name](one, value)
    except OSError as error:
        say(f'ended: {error}')
    one.close()


def connect():
    one = socket.socket()
    configure(one)
    one.settimeout(float(options.get('patience', 120)))
    try:
        one.connect((address, int(port)))
    except OSError as error:
        say(f'connect: {error}')
        return
    talk(one)


def serve(count):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    configure(listener)
    listener.bind((address, int(port)))
    listener.listen(int(options.get('backlog', 128)))
    time.sleep(float(options.get('accept-after', 0)))
    for _ in range(count):
        one, _ = listener.accept()
        threading.Thread(target=talk, args=(one,)).start()


threading.Timer(float(options['limit']), lambda: os._exit(0)).start()
count = int(options.get('conns', 1))
if mode == 'serve':
    serve(count)
else:
    for _ in range(count):
        threading.Thread(target=connect).start()
        time.sleep(float(options.get('gap', 0)))
main = threading.main_thread()
for thread in threading.enumerate():
    if thread is not main and not isinstance(thread, threading.Timer):
        thread.join()
sys.stdout.flush()
os._exit(0)
