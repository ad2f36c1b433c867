"""A pool of processes that leaves nothing behind: one BLAS thread each, gone when the parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from capmem.sweeps.allocation import keep_freed_memory

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 4  # tasks handed to each worker before one comes back
TERMINATING = [signal.SIGTERM] + ([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])


@contextmanager
def results_of(tasks: list[T], work: Callable[[T], R], workers: int) -> Iterator[Iterator[R]]:
    """Give work(task) of each task as it finishes; no process outlives the block.

    Parameters
    ----------
    tasks : list
        What is to be done; they and their results are pickled.
    work : callable
        A function of a module.
    workers : int
        Processes; 1: this one.

    Raises
    ------
    RuntimeError
        If a worker is killed.
    """
    if workers == 1:
        with threadpool_limits(1):
            yield map(work, tasks)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_start_worker)
    try:
        yield _as_completed(pool, work, iter(tasks), workers * AHEAD)
    except BaseException as error:
        with signals_ignored():
            for process in multiprocessing.active_children():
                process.kill()  # one that still starts ignores all else
            pool.shutdown(wait=True, cancel_futures=True)
        if isinstance(error, BrokenExecutor):
            told = "a worker process was killed; the same command again computes what is missing"
            raise RuntimeError(told) from None
        raise
    pool.shutdown(wait=True)


def usable_cores() -> int:
    """Return how many cores this process may use; where the system does not tell, how many there are."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@contextmanager
def signals_as_interrupts(numbers: Sequence[int] = TERMINATING) -> Iterator[None]:
    """Turn SIGTERM and SIGHUP, or others, into KeyboardInterrupt, so that what is finished is stored before the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def signals_ignored() -> Iterator[None]:
    """Let nothing interrupt what must be done to the end; processes started here ignore Ctrl-C as well."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *TERMINATING)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_completed(pool: ProcessPoolExecutor, work: Callable[[T], R], tasks: Iterable[T], ahead: int) -> Iterator[R]:
    waiting = iter(tasks)
    with signals_ignored():  # the workers start at the first submission, and inherit that
        running: set[Future[R]] = {pool.submit(work, task) for task in islice(waiting, ahead)}
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            running |= {pool.submit(work, task) for task in islice(waiting, 1)}
            yield future.result()


def _start_worker() -> None:
    """One BLAS thread; memory kept; Ctrl-C is the parent's to handle; and an end when the parent is gone."""
    threadpool_limits(1)
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in TERMINATING:
        signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
