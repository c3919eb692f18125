"""Time of operators on one device: a roofline whose few constants are measured per device.

Forms and first constants: fits to public GEMM, attention and kernel measurements (docs/equations.md). All times are
seconds, all rates FLOP/s or byte/s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tradespace.inputs.cluster import AttentionRate, Device, GemmRate
from tradespace.inputs.strategy import Profile
from tradespace.num import Memo, Num, ceil, maximum, minimum, sqrt
from tradespace.workload.operator import AttentionCore, Gemm, Operator, Work


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """What operator times need of a device for one strategy; made once per prediction."""

    low: Num  # FLOP/s sustained by large GEMMs in the recipe's type
    high: Num  # the same in 16 bits
    low_rate: GemmRate
    high_rate: GemmRate
    score: Num  # FLOP/s of batched score products
    attention: AttentionRate
    core: Num  # FLOP/s that attention rates are a share of: 16-bit peak at the sustained clock
    memory: Num  # byte/s of memory-bound kernels
    stream: Num  # seconds per value that GEMMs read or write
    tile: Num  # side of the square output tile that the on-chip buffer holds, in values
    value: Num  # bytes of one value
    cast: Num  # bytes of traffic per quantized operand element
    accumulate: Num
    memo: Memo = field(default_factory=Memo)

    def reload(self, side: Num) -> Num:
        """How often an operand is read again along an output side of this length: max(1, side / tile)."""
        return self.memo.of(side, "reload", lambda x: maximum(1.0, x / self.tile))


PEAKS = {"bf16": "peak", "fp16": "peak", "fp32": "peak_fp32", "fp8": "peak_fp8", "fp4": "peak_fp4"}


def rates(device: Device, gemm: str, value: Num, cast: Num, profile: Profile) -> Rates:
    """Resolve the rates of a device for GEMMs in type `gemm` with `value`-byte activations.

    Tile: three square tiles of t x t values share the buffer, t = sqrt(buffer / (3 value)) (spec of the study, 1.4).
    """
    high = device.gemm["fp32" if gemm == "fp32" else "bf16"]
    low = device.gemm[gemm if gemm in device.gemm else "bf16"]
    high_peak: Num = device.peak_fp32 if gemm == "fp32" else device.peak
    tier = device.memory[0]
    kernel = next(device.attention[k] for k in (*profile.attention, *device.attention) if k in device.attention)
    return Rates(
        low=getattr(device, PEAKS[gemm]) * low.fraction * low.sustained,
        high=high_peak * high.fraction * high.sustained,
        low_rate=low,
        high_rate=high,
        score=high_peak * device.unfused_fraction,
        attention=kernel,
        core=device.peak * device.gemm["bf16"].sustained,
        memory=tier.bandwidth * tier.efficiency,
        stream=value / (tier.bandwidth * tier.efficiency),
        tile=sqrt(device.on_chip / (3.0 * value)),
        value=value,
        cast=cast,
        accumulate=profile.accumulate,
    )


def gemm_time(shape: Gemm, rates: Rates, low: bool) -> Num:
    """max(2mnk / rate (1 + k0/k), traffic / bandwidth) + launch.

    The K prologue k0 and the launch time are the device's; tile and wave quantization buys nothing at training
    shapes (median error over 1,000 measured shapes changes by less than 0.4 points). Traffic is that of
    output-stationary square tiles in the on-chip buffer: U max(1, n/t) + V max(1, m/t) + W with U = m k, V = k n,
    W = m n values: each operand is read again for every tile along the other output side.
    """
    rate, constants, name = (rates.low, rates.low_rate, "low") if low else (rates.high, rates.high_rate, "high")
    ideal = rates.memo.of(shape.flops, name, lambda flops: flops / rate)
    product = ideal * rates.memo.of(shape.k, name, lambda k: 1.0 + constants.k0 / k)
    values = shape.left * rates.reload(shape.n) + shape.right * rates.reload(shape.m) + shape.out
    stream = values * (
        rates.stream if isinstance(shape.batch, float) and shape.batch == 1.0 else rates.stream * shape.batch
    )
    return maximum(product, stream) + constants.launch


def attention_time(core: AttentionCore, rates: Rates, backward: bool) -> Num:
    """FLOPs / (16-bit peak x clock x R / (1 + s0 / keys)), padded to the next multiple of 32 in head width.

    R at head widths up to 64 and from 128 on is the kernel's, linear between (fits to the FlashAttention figures:
    Dao 2023; Shah et al. 2024).
    """
    kernel = rates.attention
    wide, narrow = (kernel.backward, kernel.backward_64) if backward else (kernel.forward, kernel.forward_64)
    padded = ceil(core.head_dim / 32.0) * 32.0
    between = minimum(maximum(padded / 64.0 - 1.0, 0.0), 1.0)
    share = narrow + (wide - narrow) * between
    slow = (padded / core.head_dim) * (1.0 + kernel.half_length / core.keys)
    return core.flops * (slow / (rates.core * share))


def phase_time(op: Operator, work: Work, phase: str, rates: Rates) -> Num:
    """Compute seconds of one phase of an operator, exchanges apart."""
    shape = work.shape
    if shape is None:
        return work.traffic / rates.memory
    if isinstance(shape, AttentionCore):
        return attention_time(shape, rates, phase != "forward")
    if op.kind == "score":
        return shape.flops / rates.score
    low = op.kind == "gemm"
    time = gemm_time(shape, rates, low)
    if phase == "weight_grad":
        time = time * rates.accumulate
    if low and not (isinstance(rates.cast, float) and rates.cast == 0.0):
        time = time + cast_bytes(shape, phase, rates.cast) / rates.memory
    return time


def cast_bytes(shape: Gemm, phase: str, cast: Num) -> Num:
    """Bytes moved to quantize GEMM operands: input and weight before forward, output gradient before backward.

    Per element of each (transposed copies included): measured on fp8 training runs, 5 to 10 % of a step.
    """
    if phase == "forward":
        return cast * (shape.left + shape.right)
    return cast * shape.left if phase == "input_grad" else 0.0
