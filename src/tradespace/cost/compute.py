"""Time of operators on one device: a roofline whose few constants are measured per device.

Forms and first constants: fits to public GEMM, attention and kernel measurements (docs/equations.md). All times are
seconds, all rates FLOP/s or byte/s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tradespace.cost.traffic import Buffer, Model, traffic_model
from tradespace.inputs.cluster import AttentionRate, Device, GemmRate
from tradespace.inputs.strategy import Profile
from tradespace.num import Memo, Num, add_to, ceil, maximum, minimum, scale
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
    traffic: Model
    buffer: Buffer
    value: Num  # bytes of one value
    cast: Num  # bytes of traffic per quantized operand element
    accumulate: Num
    small_group: Num  # rows per expert at which grouped GEMMs reach half the rate
    memo: Memo = field(default_factory=Memo)


PEAKS = {"bf16": "peak", "fp16": "peak", "fp32": "peak_fp32", "fp8": "peak_fp8", "fp4": "peak_fp4"}


def rates(device: Device, gemm: str, value: Num, cast: Num, profile: Profile) -> Rates:
    """Resolve the rates of a device for GEMMs in type `gemm` with `value`-byte activations."""
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
        traffic=traffic_model(profile.traffic),
        buffer=Buffer.of(device.on_chip, value),
        value=value,
        cast=cast,
        accumulate=profile.accumulate,
        small_group=profile.small_group,
    )


def gemm_time(shape: Gemm, rates: Rates, low: bool) -> Num:
    """max(2mnk / rate (1 + k0/k), traffic / bandwidth) + launch.

    The K prologue k0 and the launch time are the device's; tile and wave quantization buys nothing at training
    shapes (median error over 1,000 measured shapes changes by less than 0.4 points). Traffic is that of the profile's
    model (`cost.traffic`).
    """
    product, launch = product_time(shape, rates, low)
    left, right, out = rates.traffic(shape, rates.buffer)
    one = isinstance(shape.batch, float) and shape.batch == 1.0
    stream = scale(add_to(left + right, out), rates.stream if one else rates.stream * shape.batch)
    return add_to(maximum(product, stream), launch)


def product_time(shape: Gemm, rates: Rates, low: bool) -> tuple[Num, Num]:
    """Seconds of a product whose operands are at hand, 2mnk / rate (1 + k0/k), and its launch time."""
    rate, constants, name = (rates.low, rates.low_rate, "low") if low else (rates.high, rates.high_rate, "high")
    ideal = rates.memo.of(shape.flops, name, lambda flops: flops / rate)
    return ideal * rates.memo.of(shape.k, name, lambda k: 1.0 + constants.k0 / k), constants.launch


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
    grouped = op.kind == "grouped"
    low = grouped or op.kind == "gemm"
    time = gemm_time(shape, rates, low)
    if grouped:
        time = time * small_groups(op, rates)
    if phase == "weight_grad":
        time = time * rates.accumulate
    if low and not (isinstance(rates.cast, float) and rates.cast == 0.0):
        cast = cast_bytes(shape, phase, rates.cast)
        time = time + (cast * shape.batch if grouped else cast) / rates.memory
    if not (isinstance(work.traffic, float) and work.traffic == 0.0):
        time = time + work.traffic / rates.memory
    return time


def small_groups(op: Operator, rates: Rates) -> Num:
    """How much slower a grouped GEMM is than a dense one of its size: 1 + M0 / M for M rows per expert (fit to the
    grouped-GEMM rows that SimuMax publishes for the B200: 31, 51, 67, 95 % at 150, 300, 600, 2,500 rows)."""
    assert isinstance(op.forward.shape, Gemm)
    return 1.0 + rates.small_group / op.forward.shape.m


def cast_bytes(shape: Gemm, phase: str, cast: Num) -> Num:
    """Bytes moved to quantize GEMM operands: input and weight before forward, output gradient before backward.

    Per element of each (transposed copies included): measured on fp8 training runs, 5 to 10 % of a step.
    """
    if phase == "forward":
        return cast * (shape.left + shape.right)
    return cast * shape.left if phase == "input_grad" else 0.0
