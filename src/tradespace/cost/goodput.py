"""Goodput: the share of a run's time that trains, between failures, checkpoints and restarts."""

from __future__ import annotations

from tradespace.num import Num, expm1, maximum, minimum, sqrt, where


def job_mtbf(device_mtbf: Num, devices: Num) -> Num:
    """Seconds between failures of a job: failures of devices are independent and each stops the job.

    Source: Kokolis et al. 2024 (arXiv 2410.21680), section 3: the rate grows with the number of nodes.

    >>> round(job_mtbf(8 * 24 / 6.5e-3, 16384), 1)  # hours; 6.5 failures per 1,000 node-days of 8 devices
    1.8
    """
    return device_mtbf / devices


def checkpoint_time(size: Num, per_device: Num, devices: Num) -> Num:
    """Seconds to write `size` bytes where every device writes its part; 0 where no rate is known.

    Source: bigscience-workshop/bigscience train/tr11-176B-ml: 2.3 TB from 384 processes at 0.15 GB/s each in 40 s.

    >>> round(checkpoint_time(2.3e12, 0.15e9, 384.0), 1)
    39.9
    """
    return where(per_device > 0.0, size / maximum(per_device * devices, 1.0), 0.0)


def young_interval(write: Num, mtbf: Num) -> Num:
    """Seconds between checkpoints that lose least, first order: sqrt(2 C M).

    Source: Young 1974, A first order approximation to the optimum checkpoint interval.

    >>> round(young_interval(1.0, 3.1 * 60), 1)  # minutes
    19.3
    """
    return sqrt(2.0 * write * mtbf)


def best_interval(write: Num, mtbf: Num) -> Num:
    """Seconds of work between checkpoints that lose least.

    sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C while C < 2M, else M.
    Source: Daly 2006, A higher order estimate of the optimum checkpoint interval, eq. 37.
    """
    ratio = write / (2.0 * mtbf)
    root = sqrt(ratio)
    return where(ratio < 1.0, young_interval(write, mtbf) * (1.0 + root / 3.0 + ratio / 9.0) - write, mtbf)


def goodput(write: Num, interval: Num, mtbf: Num, restart: Num) -> Num:
    """Share of the time that is new work: t / (M e^(R/M) (e^((t + C)/M) - 1)) for failures without memory.

    To first order 1 - C/t - (t + C)/2M - R/M. Source: Daly 2006, eq. 20.

    >>> round(goodput(60.0, 1158.0, 11135.0, 0.0), 3), round(1 - 60 / 1158 - 1218 / 2 / 11135, 3)
    (0.9, 0.893)
    """
    again = (1.0 + expm1(restart / mtbf)) * expm1((interval + write) / mtbf)
    return minimum(interval / (mtbf * again), 1.0)
