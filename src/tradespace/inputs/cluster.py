"""The cluster: a device with its measured efficiencies, its memory tiers, and network dims from inner to outer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tradespace.inputs.economics import Economics
from tradespace.inputs.fields import count, quantity, series
from tradespace.num import Num


@dataclass(frozen=True, kw_only=True, eq=False)
class GemmRate:
    """GEMM time = 2mnk / (peak fraction sustained) (1 + k0/k) + launch, for one data type on one device.

    `fraction` and `k0` come from micro-benchmarks of warm, short kernels; `sustained` is what clocks under the
    power of a long training run leave of that.
    """

    fraction: Num = quantity("", "best share of the dense peak that a large GEMM reaches", low=0.01, high=1.0)
    k0: Num = quantity("", "inner length at which the prologue costs as much as the product", default=0.0)
    launch: Num = quantity("s", "fixed time of one kernel", default=0.0)
    sustained: Num = quantity("", "clock under training load over the clock of the benchmark", default=1.0, high=1.5)
    source: str = ""
    confidence: str = "assumed"


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionRate:
    """Rate of a fused attention kernel: fraction of the 16-bit peak / (1 + half_length / keys), causal FLOPs."""

    forward: Num = quantity("", "share of the peak for long sequences, forward, head width 128", low=0.001, high=1.0)
    backward: Num = quantity("", "share of the peak for long sequences, backward", low=0.001, high=1.0)
    forward_64: Num = quantity("", "the same for head widths up to 64", low=0.001, high=1.0)
    backward_64: Num = quantity("", "the same for head widths up to 64, backward", low=0.001, high=1.0)
    half_length: Num = quantity("", "keys at which half the rate is reached", default=0.0)
    source: str = ""
    confidence: str = "assumed"


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryTier:
    """One tier of memory of a device: local (HBM, SRAM), expanded (CXL, pooled), host or nvme."""

    name: str
    kind: str = "local"
    capacity: Num = quantity("byte", "bytes that the driver shows for one device", low=1e6)
    bandwidth: Num = quantity("byte/s", "nominal bytes per second of one device, reads and writes together", low=1e6)
    efficiency: Num = quantity("", "share of it that memory-bound training kernels reach", default=0.8, high=1.0)
    random: Num = quantity(
        "", "share of the bandwidth that random look-ups of short rows reach (assumed)", default=0.5, high=1.0
    )
    latency: Num = quantity("s", "time of one small access", default=0.0)
    shared_by: Num = count("devices that divide the bandwidth", default=1.0)
    source: str = ""
    confidence: str = "assumed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Device:
    """One accelerator as the framework sees it; peaks are dense and in FLOP/s."""

    key: str
    name: str
    vendor: str = ""
    year: Num = count("year of introduction", default=0.0, low=0.0)
    peak: Num = quantity("FLOP/s", "dense 16-bit matrix peak (bf16; fp16 where there is no bf16)", low=1e9)
    peak_fp32: Num = quantity("FLOP/s", "dense fp32 peak, 0 if not known", default=0.0)
    peak_fp8: Num = quantity("FLOP/s", "dense 8-bit peak, 0 without", default=0.0)
    peak_fp4: Num = quantity("FLOP/s", "dense 4-bit peak, 0 without", default=0.0)
    on_chip: Num = quantity("byte", "on-chip buffer that GEMM tiles live in (last-level cache or software SRAM)")
    power: Num = quantity("W", "thermal design power", default=0.0)
    memory: tuple[MemoryTier, ...]
    gemm: Mapping[str, GemmRate] = field(default_factory=dict)
    attention: Mapping[str, AttentionRate] = field(default_factory=dict)
    unfused_fraction: Num = quantity("", "share of the peak of batched score GEMMs", default=0.65, high=1.0)
    reserve: Num = quantity("byte", "taken by context and libraries before the first tensor", default=0.0)
    source: str = ""
    confidence: str = "assumed"
    notes: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectiveCurve:
    """Measured cost of one collective inside one dim: t = latency + V f(n) / (bandwidth fraction) + root sqrt(V).

    Each tuple has one entry per group size in `sizes` (ascending); between them the curve is linear. V is the full
    tensor in bytes, f(n) = 2(n-1)/n for an all-reduce, (n-1)/n for the others.
    """

    sizes: tuple[float, ...] = series("", "ranks in the group, ascending", low=2.0, high=1e6)
    latency: tuple[float, ...] = series("s", "time of a small message", high=1.0)
    fraction: tuple[float, ...] = series("", "reached share of the bandwidth, above 1 for in-switch sums", low=0.001)
    root: tuple[float, ...] = series("s/byte^0.5", "coefficient of the square root of the volume")
    in_network: bool = False  # measured with sums in the switch at its largest group
    source: str = ""
    confidence: str = "assumed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Dim:
    """One level of the interconnect. Bandwidth is per device and direction, all links of the device together."""

    name: str
    kind: str
    size: Num = count(
        "devices (inner dim) or groups of the inner dims that it connects; 0 = as many as needed",
        low=0.0,
        high=1e6,
    )
    bandwidth: Num = quantity("byte/s", "per device and direction", low=1e6)
    latency: Num = quantity("s", "end to end, for a small message", default=0.0, high=1.0)
    curve_latency: Num = quantity(
        "s", "latency of the fabric that the curves were measured on; 0 = `latency`", default=0.0
    )
    oversubscription: Num = quantity("", "1 = full bisection", default=1.0, low=1.0, high=1000.0)
    in_network: bool = False
    curves: Mapping[str, CollectiveCurve] = field(default_factory=dict)
    congestion_ranks: tuple[float, ...] = series("", "ranks on this dim at which congestion was measured", default=())
    congestion_share: tuple[float, ...] = series(
        "",
        "share of the rate left with so many; none stated = a healthy fabric",
        default=(),
        low=1e-6,
        high=1.0,
    )
    source: str = ""
    confidence: str = "assumed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Cluster:
    """Devices on network dims, inner to outer; the outermost dim grows to hold `devices`.

    `pipelined`: all-reduces keep every dim busy without a gap, so that `fill` does not count for them: the hierarchical
    closed form of COMET (arXiv 2211.16648), where `fill` is 1 / chunks.
    """

    key: str
    name: str
    device: Device
    network: tuple[Dim, ...]
    devices: Num = count("devices in the job", default=8.0)
    fill: Num = quantity(
        "", "share of the faster dims' time that chunk pipelining leaves exposed", default=0.15, high=1.0
    )
    pipelined: bool = False
    launch: Num = quantity(
        "s",
        "host time to launch a collective on one device where one process drives all of a node (nccl-tests -g)",
        default=0.0,
        high=1.0,
    )
    economics: Economics = field(default_factory=Economics)
    source: str = ""
    confidence: str = "assumed"
    notes: str = ""

    @property
    def local(self) -> MemoryTier:
        """The fastest tier: the first one listed."""
        return self.device.memory[0]
