"""COMET (Kadiyala et al., arXiv 2211.16648): its claims as functions of the presets and of what is assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradespace.step import Step
from tradespace.studies.claims import Value
from tradespace.studies.presets import Case, Setting, case, preset

STUDY = "comet"


@dataclass(frozen=True, eq=False)
class Curve:
    """A cluster's steps over all tensor degrees."""

    case: Case
    step: Step
    degrees: NDArray[np.float64]
    seconds: NDArray[np.float64]
    memory: NDArray[np.float64]
    fits: NDArray[np.bool_]

    @staticmethod
    def of(cluster: str, settings: Sequence[Setting] = (), *, expanded: bool = False) -> Curve:
        """The curve of a cluster of the study, in seconds per 1,024 sequences and bytes per device."""
        found = case(STUDY, cluster, settings, expanded=expanded)
        step = found.curve
        degrees = np.asarray(found.degrees, dtype=np.float64)
        seconds, memory, fits = (
            np.broadcast_to(x, degrees.shape) for x in (found.seconds(step), step.memory_total, step.fits & step.legal)
        )
        return Curve(found, step, degrees, seconds, memory, fits)

    def at(self, degree: int, values: NDArray[np.float64] | None = None) -> float:
        """Seconds (or another array's value) at a tensor degree."""
        return float((self.seconds if values is None else values)[int(degree).bit_length() - 1])

    @property
    def smallest(self) -> float:
        """The smallest tensor degree that fits; infinite without one."""
        return float(self.degrees[self.fits].min()) if self.fits.any() else float("inf")

    @property
    def best(self) -> float:
        """Seconds of the fastest degree that fits; infinite without one."""
        return float(self.seconds[self.fits].min()) if self.fits.any() else float("inf")

    @property
    def best_degree(self) -> int:
        """The fastest degree that fits, 0 without one."""
        return int(self.degrees[self.fits][np.argmin(self.seconds[self.fits])]) if self.fits.any() else 0


def dojo_over_dgx(settings: Sequence[Setting]) -> float:
    """Claim 1: seconds of DGX MP64_DP16 over those of Dojo MP8_DP8."""
    return Curve.of("dgx", settings).at(64) / Curve.of("dojo", settings).at(8)


def dojo_over_best(settings: Sequence[Setting]) -> float:
    """Claim 2: seconds of the fastest DGX configuration, fitting or not, over those of Dojo MP8_DP8."""
    return float(Curve.of("dgx", settings).seconds.min()) / Curve.of("dojo", settings).at(8)


def dojo_smallest(settings: Sequence[Setting]) -> float:
    """Claim 3: the smallest tensor degree that fits a Dojo tile."""
    return Curve.of("dojo", settings).smallest


def dojo_monotone(settings: Sequence[Setting]) -> float:
    """Claim 4: 1 if Dojo's time only falls with the data-parallel degree, else 0."""
    return float(np.all(np.diff(Curve.of("dojo", settings).seconds) > 0.0))


def tpu_optimum(settings: Sequence[Setting]) -> float:
    """Claim 5: the fastest tensor degree on TPU v4, whether or not it fits."""
    found = Curve.of("tpu", settings)
    return float(found.degrees[np.argmin(found.seconds)])


def tpu_smallest(settings: Sequence[Setting]) -> float:
    """Claim 6: the smallest tensor degree that fits a TPU v4."""
    return Curve.of("tpu", settings).smallest


def tpu_more_memory(settings: Sequence[Setting]) -> float:
    """Claim 7: footprint of MP64_DP64 over the capacity of a TPU v4."""
    found = Curve.of("tpu", settings)
    return found.at(64, found.memory) / float(found.case.cluster.local.capacity)


def tpu_gain(settings: Sequence[Setting]) -> float:
    """Claim 8: seconds of MP256_DP16 over those of MP64_DP64 on TPU v4."""
    found = Curve.of("tpu", settings)
    return found.at(256) / found.at(64)


def tpu_cliff(settings: Sequence[Setting]) -> float:
    """Claim 9: seconds of MP512_DP8 over those of MP256_DP16 on TPU v4."""
    found = Curve.of("tpu", settings)
    return found.at(512) / found.at(256)


def dgx_exposed(settings: Sequence[Setting]) -> float:
    """Claim 10: share of DGX MP64_DP16's step that waits for exchanges of the tensor group."""
    found = Curve.of("dgx", settings)
    exposed = np.broadcast_to(found.step.time["exposed_tensor"] / found.step.step_time, found.degrees.shape)
    return found.at(64, exposed)


def cluster_spread(settings: Sequence[Setting]) -> float:
    """Claim 11: slowest over fastest of `compared` clusters, each expanded, at its best strategy that fits."""
    best = [Curve.of(name, settings, expanded=True).best for name in preset(STUDY)["compared"]]
    return max(best) / min(best)


def expansion_gain(settings: Sequence[Setting]) -> float:
    """Claim 12: seconds of the best DGX strategy that fits without expansion over those of the best with it."""
    return Curve.of("dgx", settings).best / Curve.of("dgx", settings, expanded=True).best


VALUES: Mapping[int, Value] = {
    1: dojo_over_dgx,
    2: dojo_over_best,
    3: dojo_smallest,
    4: dojo_monotone,
    5: tpu_optimum,
    6: tpu_smallest,
    7: tpu_more_memory,
    8: tpu_gain,
    9: tpu_cliff,
    10: dgx_exposed,
    11: cluster_spread,
    12: expansion_gain,
}
