"""Reduce a refresh's memory: return freed memory of threads to the system at once.

Dozens of threads receive replies of several megabytes. By default glibc keeps an arena per thread and raises the threshold
above which a block is mapped separately, so freed memory stays with the process: 420 MiB at the peak of a full refresh
instead of 390.
"""

import ctypes

#: Parameters of mallopt(3), numbered as in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_SMALL_BYTES = 64 * 1024
_ARENAS = 2


def release_memory() -> None:
    """Configure glibc's malloc for this process; does nothing with another C library."""
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    for parameter, value in (
        (_MMAP_THRESHOLD, _SMALL_BYTES),
        (_TRIM_THRESHOLD, _SMALL_BYTES),
        (_ARENA_MAX, _ARENAS),
    ):
        mallopt(parameter, value)
