"""A zygote: a copy of this process, made early, that makes fresh copies of itself when asked.

It is forked before torch has computed anything, so that its copies may use threads and devices; it
knows whatever was imported and registered, so that nothing has to be sent but requests. It computes
nothing. It and its copies end with the process that started it, however that ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import sys
import time
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

if sys.platform == "linux":
    import resource

AVAILABLE = sys.platform == "linux" and hasattr(os, "fork")
"""Elsewhere a copy of a process cannot be trusted to work, or to end."""
SPAWN, END = b"s", b"e"
MESSAGE = struct.Struct("!cq")
ANSWER = struct.Struct("!q")
GRACE = 2.0
"""Seconds for a process that hung up to end by itself, so that it can be told how it ended."""
PR_SET_PDEATHSIG = 1
LEAST_LIKED = b"900"
"""Of 1000: whom the system ends first when memory runs out."""


class ZygoteLostError(Exception):
    """The zygote itself is gone."""


@dataclass(frozen=True)
class Copy:
    """A process that serves requests."""

    process: int
    connection: Connection


class Zygote:
    """Makes processes that run `serve(connection)`, each in a group of its own."""

    def __init__(self, serve: Callable[[Connection], None]) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()  # else what is waiting there is written twice
        with warnings.catch_warnings():
            # Threads of others do not matter: none of them is needed in a copy.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process == 0:
            try:
                ours.close()
                _end_with(parent, signal.SIGTERM)
                _listen(theirs, serve)
            finally:
                os._exit(1)
        theirs.close()
        self.process = process
        self._control = ours
        self.close = weakref.finalize(self, _close, ours, process, parent)

    def spawn(self) -> Copy:
        """A fresh process."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = self._ask(SPAWN, 0, [theirs.fileno()])
        return Copy(process, Connection(ours.detach()))

    def end(self, copy: Copy, at_once: bool = True) -> str:
        """End a process with all that it started; how it had ended, in words."""
        copy.connection.close()
        return _words(self._ask(END, -copy.process if at_once else copy.process))

    def _ask(self, what: bytes, number: int, files: list[int] | None = None) -> int:
        try:
            socket.send_fds(self._control, [MESSAGE.pack(what, number)], files or [])
            answer = self._control.recv(ANSWER.size)
        except OSError as error:
            raise ZygoteLostError from error
        if len(answer) != ANSWER.size:
            raise ZygoteLostError
        return int(ANSWER.unpack(answer)[0])


def limit_memory(more: int) -> None:
    """Let an allocation of this process fail that goes beyond so many bytes more than it has."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more, most))


def _close(control: socket.socket, process: int, parent: int) -> None:
    """Hang up, and wait for the zygote to end all that it made."""
    if os.getpid() != parent:
        control.close()
        return
    with suppress(OSError):
        control.shutdown(socket.SHUT_RDWR)  # a later copy of this process may hold it open too
    control.close()
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)


def _listen(control: socket.socket, serve: Callable[[Connection], None]) -> None:
    """Make and end processes until the one that asks is gone."""
    processes: set[int] = set()

    def end_all(*_: object) -> None:
        for process in processes:
            _kill(process)
        os._exit(0)

    os.setsid()  # a Ctrl-C at the terminal is for the one who asks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end_all)
    while True:
        message, files, *_ = socket.recv_fds(control, MESSAGE.size, 1)
        if len(message) != MESSAGE.size:
            end_all()
        what, number = MESSAGE.unpack(message)
        if what == SPAWN:
            process = _copied(control, serve, files[0])
            processes.add(process)
            control.sendall(ANSWER.pack(process))
        else:
            processes.discard(abs(number))
            control.sendall(ANSWER.pack(_ended(abs(number), at_once=number < 0)))


def _copied(control: socket.socket, serve: Callable[[Connection], None], file: int) -> int:
    zygote = os.getpid()
    process = os.fork()
    if process:
        os.close(file)
        with suppress(OSError):  # it has done so itself
            os.setpgid(process, process)
        return process
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        control.close()
        _end_with(zygote, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:
            score.write(LEAST_LIKED)
        serve(Connection(file))
    finally:
        os._exit(0)


def _end_with(parent: int, number: int) -> None:
    """Get a signal when the parent ends, by whatever cause."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def _ended(process: int, at_once: bool) -> int:
    """End a process of this one, with its group; the status that the system gives."""
    patience = time.monotonic() + (0 if at_once else GRACE)
    while time.monotonic() < patience and not _has_ended(process):
        time.sleep(0.01)
    _kill(process)  # before its status is taken: until then nobody else gets its number
    try:
        return os.waitpid(process, 0)[1]
    except ChildProcessError:
        return 0


def _has_ended(process: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return True


def _kill(process: int) -> None:
    for kill in (os.killpg, os.kill):
        with suppress(OSError):
            kill(process, signal.SIGKILL)


def _words(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
