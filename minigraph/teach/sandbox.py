"""Linux's Landlock: from here on this process, and every child, may write only below one folder, use no TCP, and send
no signals to others.

No privilege is needed (``man 7 landlock``; kernel 5.13, TCP from 6.7, signals from 6.12). Elsewhere it is not there.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
PATH_BENEATH, VERSION_FLAG, NO_NEW_PRIVS = 1, 1, 38
# bits of LANDLOCK_ACCESS_FS_*: write, remove and make files of any kind; later kernels add refer and truncate
WRITE = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
REFER, TRUNCATE = 1 << 13, 1 << 14
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
TCP = 0b11  # bind and connect
SCOPES = 0b11  # abstract sockets and signals stay inside


def version() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, 0, VERSION_FLAG))


def adopt_orphans() -> None:
    """From here on, a process that outlives its parent becomes a child of this one, not of the system's first process."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def children() -> set[int]:
    """The processes whose parent is this one; none where there is no ``/proc``."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = path.read_text(errors="replace").rpartition(")")  # the name before it may hold anything
        except OSError:
            continue  # it is gone
        if int(rest.split()[1]) == os.getpid():
            found.add(int(path.parent.name))
    return found


def confine(folder: Path) -> bool:
    """Give up writing outside ``folder`` for good; False where the kernel cannot."""
    found = version()
    if not found:
        return False
    system = ctypes.CDLL(None, use_errno=True)
    files = WRITE | (REFER if found >= 2 else 0) | (TRUNCATE if found >= 3 else 0)
    fields = [files, *([TCP] if found >= 4 else []), *([SCOPES] if found >= 6 else [])]
    rules = struct.pack(f"{len(fields)}Q", *fields)
    ruleset = system.syscall(CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0)
    if ruleset < 0:
        return False
    handle = os.open(folder, os.O_PATH)
    beneath = struct.pack("=Qi", files, handle)  # a packed struct in the kernel, too
    allowed = system.syscall(ADD_RULE, ruleset, PATH_BENEATH, beneath, 0) == 0
    confined = (allowed and system.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                and system.syscall(RESTRICT_SELF, ruleset, 0) == 0)
    os.close(handle)
    os.close(ruleset)
    return confined
