"""Parts of a sweep as tasks: in this process, on local worker processes, or on a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from tradespace.errors import InputError

P = TypeVar("P")
T = TypeVar("T")
PATIENCE = "10s"
"""How long an answer of a scheduler is waited for."""
AHEAD = 4
"""Parts given out per worker before their results are asked for: none waits, and few results are held."""


def here(work: Callable[[Any, P], T], shared: Any, parts: Mapping[int, P]) -> Iterator[tuple[int, T]]:
    """`work(shared, part)` for every part, one after the other: its number and its result."""
    for number, part in parts.items():
        yield number, work(shared, part)


def on_dask(client: Any, work: Callable[[Any, P], T], shared: Any, parts: Mapping[int, P]) -> Iterator[tuple[int, T]]:
    """The same on the workers of a Dask client, in the order in which they finish; parts of a dead worker are given to
    others. What is shared goes with every part: scattered once, it would be lost with the workers that hold it."""
    distributed = _distributed()
    waiting = iter(parts.items())
    given: dict[Any, int] = {}

    def give(count: int) -> list[Any]:
        some = {client.submit(work, shared, part, pure=False): n for n, part in islice(waiting, count)}
        given.update(some)
        return list(some)

    finished = distributed.as_completed(give(AHEAD * max(1, sum(client.nthreads().values()))))
    for future in finished:
        try:
            result = future.result()
        except distributed.KilledWorker:
            raise InputError(f"sweep: part {given[future]} ended every worker that it was given to") from None
        except CancelledError:
            raise InputError("sweep: the scheduler is gone; what is finished is kept: continue with --resume") from None
        yield given.pop(future), result
        for another in give(1):
            finished.add(another)


@contextmanager
def client(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """A Dask client: of `workers` local processes, or of the cluster behind a scheduler's address; None for neither."""
    if workers is None and scheduler is None:
        yield None
        return
    if workers is not None and scheduler is not None:
        raise InputError("sweep: --workers starts local processes and --scheduler uses others; give one of them")
    distributed = _distributed()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters becomes one sentence of ours
    if scheduler is not None:
        with _reached(distributed.Client, scheduler) as connected:
            yield connected
        return
    assert workers is not None
    if not 1 <= workers <= 1024:
        raise InputError(f"--workers: {workers}, but between 1 and 1024 processes can be started here")
    options = {"dashboard_address": None, "silence_logs": logging.CRITICAL, "memory_limit": 0}
    started = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, **options)
    with started as local, distributed.Client(local) as connected:
        yield connected


def _distributed() -> Any:
    """Dask's module, or one sentence on how to get it."""
    try:
        import distributed
    except ImportError:
        raise InputError("sweep: Dask is missing; install it with: pip install 'tradespace[cluster]'") from None
    return distributed


def _reached(connect: Any, address: str) -> Any:
    """A client of the scheduler at an address, with workers."""
    try:
        found = connect(address, timeout=PATIENCE)
    except (OSError, ValueError) as fault:
        reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise InputError(f"--scheduler: no Dask scheduler answers at {address}: {reason}") from None
    if not found.nthreads():
        found.close()
        raise InputError(f"--scheduler: the scheduler at {address} has no workers yet; start dask worker {address}")
    return found
