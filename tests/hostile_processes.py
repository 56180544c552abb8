"""Methods that nobody would want in the same process."""

import ctypes
import faulthandler
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress

import torch

from tests.zoo import KEPT, elsewhere


@elsewhere("ends its process with 0", "crashed its process twice: exit code 0")
def exits(**_):
    os._exit(0)


@elsewhere("ends its process with 3", "crashed its process twice: exit code 3")
def exits_3(**_):
    os._exit(3)


@elsewhere("is killed", "crashed its process twice: signal SIGKILL")
def kills(**_):
    os.kill(os.getpid(), signal.SIGKILL)


@elsewhere("reads where nothing is", "crashed its process twice: signal SIGSEGV")
def crashes(**_):
    faulthandler.disable()  # its words are for those who do not expect this
    ctypes.string_at(0)


@elsewhere("aborts", "crashed its process twice: signal SIGABRT")
def aborts(**_):
    faulthandler.disable()
    os.abort()


@elsewhere("kills its group", "crashed its process twice: signal SIGTERM")
def kills_group(**_):
    os.killpg(0, signal.SIGTERM)


@elsewhere("never ends", "did not answer within 2 s, twice")
def loops(**_):
    while True:
        pass


@elsewhere("stops itself", "did not answer within 2 s, twice")
def stops(**_):
    os.kill(os.getpid(), signal.SIGSTOP)


@elsewhere("takes all memory", "raised (MemoryError|RuntimeError)")
def hoards(**_):
    KEPT.append([torch.empty(2**30, dtype=torch.uint8) for _ in range(10_000)])


@elsewhere("comes back twice")
def forks(**_):
    os.fork()


@elsewhere("leaves a process behind", "crashed its process twice: exit code 5")
def spawns(**_):
    subprocess.Popen(["sleep", "4321"])
    os._exit(5)


@elsewhere("leaves a thread behind")
def threads(dataset, **_):
    def spoil():
        time.sleep(2)  # until the batch is long done
        while True:
            time.sleep(0.001)
            torch.Tensor.argsort = None

    threading.Thread(target=spoil, daemon=True).start()


@elsewhere("closes all files", "crashed its process twice")
def closes(**_):
    os.closerange(3, 10_000)


@elsewhere("writes where it should answer", "crashed its process twice")
def babbles(**_):
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, b"\0\0\0\4junk" * 100)


@elsewhere("interrupts itself", "raised KeyboardInterrupt")
def interrupts(**_):
    raise KeyboardInterrupt


@elsewhere("leaks what no guard watches")
def leaks(**_):
    sys.modules["attrcheck.engine.results"].LEAKED = True
