"""Clock of a process that wakes up: its time of day jumps, and its clock for waits does not.

So it is after a sleep under Linux. The jump is a shared library before the C library, so Python, gRPC and OpenSSL all see it.
Other processes do not.
"""

import struct
import subprocess
from pathlib import Path

HOUR = 3600.0
CLOCK = "FEDLOOM_FAULTS_CLOCK"
"""Variable of the environment: file of eight bytes, the seconds by which the time of day is ahead."""

SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile double *ahead;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("%s");
    int file = path ? open(path, O_RDONLY) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    ahead = found == MAP_FAILED ? 0 : found;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_BOOTTIME))
        now->tv_sec += (time_t) *ahead;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec, now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    return into ? *into = precise.tv_sec : precise.tv_sec;
}
"""


def prepare_clock(folder: Path) -> dict[str, str]:
    """Return the environment of a process with such a clock, whose files are in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    set_ahead(folder, 0.0)
    (folder / "clock.c").write_text(SOURCE % CLOCK)
    library = folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, folder / "clock.c"], check=True)
    return {"LD_PRELOAD": str(library), CLOCK: str(folder / "clock")}


def set_ahead(folder: Path, seconds: float) -> None:
    """Let the processes of `prepare_clock` be so many seconds ahead; they have the file mapped."""
    file = folder / "clock"
    with file.open("r+b" if file.exists() else "wb") as clock:
        clock.write(struct.pack("d", seconds))
