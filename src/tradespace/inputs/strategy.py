"""The strategy: parallel degrees, sharding, microbatches, recompute, precision, schedule, and the framework profile."""

from __future__ import annotations

from dataclasses import dataclass, field

from tradespace.inputs.fields import count, quantity, switch
from tradespace.num import Num, at_least

RECOMPUTE_CODES = {"none": 0.0, "selective": 1.0, "full": 2.0}
ORDER = ("tensor", "context", "expert", "data", "pipeline")


@dataclass(frozen=True, kw_only=True, eq=False)
class Precision:
    """Bytes of one value by role, and the type that the large GEMMs multiply in."""

    name: str
    gemm: str
    value: Num = quantity("byte", "saved activations, exchanged activations, unsharded parameter copies")
    weight: Num = quantity("byte", "parameter copy that forward and backward read")
    gradient: Num = quantity("byte", "gradient held to the end of the step (main gradient)")
    reduce: Num = quantity("byte", "gradient value on the wire")
    master: Num = quantity("byte", "separate fp32 copy of a parameter, 0 without")
    full: Num = quantity("byte", "an fp32 value: softmax statistics, parameters kept in fp32", default=4.0)
    mask: Num = quantity("byte", "one element of a dropout mask", default=1.0)
    operand: Num = quantity(
        "byte", "a GEMM's input as saved for its weight gradient; 0: as other activations", default=0.0
    )
    dispatch: Num = quantity(
        "byte", "a value sent to its experts, scales included; 0: as exchanged activations", default=0.0
    )
    cast: Num = quantity("byte", "traffic of quantizing one GEMM operand element, 0 for 16-bit", default=0.0)
    source: str = ""
    confidence: str = "assumed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Optimizer:
    """State bytes and traffic of the optimizer."""

    name: str
    state: Num = quantity("byte", "state per parameter beside the master copy (Adam: two fp32 moments)")
    traffic: Num = quantity("byte", "read and written per parameter in one update")
    source: str = ""
    confidence: str = "assumed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """What a framework's kernels, host code and overlap do, as counted or measured numbers; one for all runs of it.

    Passes are reads or writes of one activation tensor; `f` forward, `b` backward. `traffic` names the model of GEMM
    memory traffic (`cost.traffic`: compulsory, buffered, tiled), `hybrid` that of memory in several tiers
    (`cost.tiers`: serial, parallel, placed).
    """

    name: str
    attention: tuple[str, ...]
    norm_f: Num = quantity("", "passes of a norm", default=2.0)
    norm_b: Num = quantity("", "passes of a norm, backward", default=4.0)
    residual_f: Num = quantity("", "passes of bias, dropout and residual addition", default=2.5)
    residual_b: Num = quantity("", "the same, backward", default=4.0)
    plain_f: Num = quantity("", "passes over the inner width of a plain MLP's activation", default=2.0)
    plain_b: Num = quantity("", "the same, backward", default=3.0)
    gated_f: Num = quantity("", "passes over twice the inner width of a gated MLP's activation", default=1.5)
    gated_b: Num = quantity("", "the same, backward", default=2.5)
    rope_f: Num = quantity("", "passes over queries and keys of the rotary embedding", default=2.0)
    rope_b: Num = quantity("", "the same, backward", default=2.0)
    copy_f: Num = quantity("", "passes over q, k, v and context copied around unfused attention", default=4.0)
    copy_b: Num = quantity("", "the same, backward", default=6.0)
    score_f: Num = quantity("", "passes over one score matrix of unfused attention", default=6.5)
    score_b: Num = quantity("", "the same, backward", default=9.5)
    permute: Num = quantity(
        "", "passes over the routed copies to sort them by expert and back, at the rate of plain kernels", default=6.4
    )
    small_group: Num = quantity(
        "", "rows per expert at which a grouped GEMM reaches half the rate of a dense one", default=0.0
    )
    loss_f: Num = quantity("byte", "traffic of the cross-entropy per logit", default=8.0)
    loss_b: Num = quantity("byte", "the same, backward", default=4.0)
    accumulate: Num = quantity(
        "", "slowdown of a weight-gradient GEMM that accumulates into fp32", default=1.0, low=1.0
    )
    dropout: Num = switch("1: dropout masks are kept (one byte each)")
    saves_gathered: Num = switch("1: GEMMs save their gathered input, 0: it is gathered again (sequence parallelism)")
    saves_copies: Num = quantity("", "copies of q, k and v kept beside those that attention saves", default=0.0)
    saves_gates: Num = quantity("", "inner widths kept beside gate, up and their product (eager: 1)", default=0.0)
    saves_outputs: Num = switch("1: a stage keeps its output as well for each microbatch in flight (DeepSpeed)")
    saves_operands: Num = switch("1: inputs of low-precision GEMMs are saved in their own type", default=1.0)
    host_f: Num = quantity("s", "host time to launch one layer forward, one microbatch", default=0.0)
    host_b: Num = quantity("s", "the same, backward", default=0.0)
    host_tensor_f: Num = quantity("s", "the same with tensor parallelism, forward", default=0.0)
    host_tensor_b: Num = quantity("s", "the same with tensor parallelism, backward", default=0.0)
    host_experts_f: Num = quantity("s", "host time to launch a layer with experts, forward", default=0.0)
    host_experts_b: Num = quantity("s", "the same, backward", default=0.0)
    graph_f: Num = quantity("s", "host time of a layer under CUDA graphs, forward", default=0.05e-3)
    graph_b: Num = quantity("s", "the same, backward", default=0.08e-3)
    hide_tensor: Num = quantity("", "hidden share of tensor-parallel exchanges", default=0.0, high=1.0)
    context_ring: Num = switch("keys and values go round a ring of neighbours (p2p), not by all-gather", default=0.0)
    dispatch_once: Num = switch(
        "a token goes once to each device of a node (DeepEP), not once to each expert", default=0.0
    )
    hide_expert: Num = quantity("", "hidden share of the experts' all-to-all", default=0.0, high=1.0)
    hide_p2p: Num = quantity("", "hidden share of pipeline transfers", default=0.0, high=1.0)
    data_window: Num = quantity(
        "", "share of the last backward that hides the gradient reduction", default=0.9, high=1.0
    )
    fsdp_exposed: Num = quantity(
        "", "share of the shorter of compute and gather that FSDP leaves exposed", default=0.35
    )
    fsdp_slowdown: Num = quantity("", "compute time with gathers running beside it over without", default=1.03, low=1.0)
    p2p_latency: Num = quantity("s", "software overhead of one pipeline transfer", default=15e-6)
    optimizer_fixed: Num = quantity("s", "launches and norms of one optimizer step", default=3e-3)
    step_fixed: Num = quantity("s", "time per step outside the model (logging, data)", default=0.0)
    jitter: Num = quantity("", "relative time added per doubling of devices above 8", default=0.0)
    vocab_multiple: Num = count("the vocabulary is padded to a multiple of this times the tensor degree", default=128.0)
    fp32_parameters: Num = switch("1: parameters are kept as fp32 shards and cast for compute, without a master copy")
    extra_state: Num = quantity("byte", "held per parameter beside the optimizer states", default=0.0)
    both_gradients: Num = switch("1: gradients are held in the model's type and, sharded or not, in fp32 (DeepSpeed)")
    loose_gradient: Num = quantity("byte", "per parameter until the end of backward under ZeRO 1 and 2", default=0.0)
    logit_bytes: Num = quantity(
        "byte", "peak memory per logit: copies in both precisions and the gradient", default=6.0
    )
    wgrad_buffer: Num = quantity(
        "byte", "per parameter of the largest weight: fp32 weight-gradient temporary", default=4.0
    )
    fit_share: Num = quantity("", "share of the capacity that tensors surely may fill", default=0.90, high=1.0)
    risk_share: Num = quantity("", "share beyond which a run surely fails", default=0.98, high=1.0)
    spread: Num = quantity("", "standard deviation of log(measured / predicted) over runs in 16 bits", default=0.16)
    spread_low: Num = quantity("", "the same for runs in 8 or 4 bits", default=0.20)
    balanced: Num = switch("1: layers are split over stages by cost, not by count")
    overhead: Num = quantity("byte", "allocated beyond the counted tensors", default=0.2e9)
    slack: Num = quantity("", "reserved by the allocator beyond what is allocated at the peak, relative", default=0.04)
    context: Num = quantity("byte", "what the driver shows beyond that: CUDA context, NCCL, libraries", default=1.5e9)
    traffic: str = "tiled"
    hybrid: str = "serial"
    source: str = ""
    confidence: str = "assumed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Overlap:
    """Which exchanges may run beside compute: 1 on, 0 off."""

    tensor: Num = switch("tensor-parallel exchanges behind GEMMs", default=1.0)
    gradient: Num = switch("gradient reduction behind the last backward", default=1.0)
    parameter: Num = switch("parameter gathering behind the first forward", default=1.0)
    pipeline: Num = switch("stage-to-stage transfers behind compute", default=1.0)
    expert: Num = switch("expert dispatch and combine behind compute", default=1.0)
    shared_expert: Num = switch("expert dispatch and combine behind the shared experts", default=0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Strategy:
    """How the model is laid over the devices; degrees may be open-axis arrays.

    The data-parallel degree is derived: devices / (tensor x context x pipeline). Experts fold the devices of a stage
    a second way: expert x expert_tensor x expert-data. Recompute is a code, see `RECOMPUTE_CODES`; selective
    recomputation repeats the operators of `modules`.
    """

    profile: Profile
    precision: Precision
    optimizer: Optimizer
    global_batch: Num = count("sequences per step over all devices")
    tensor: Num = count("tensor-parallel degree", default=1.0)
    sequence_parallel: Num = switch("1: norms and residuals are sharded over the sequence in the tensor group")
    context: Num = count("context-parallel degree", default=1.0)
    expert: Num = count("expert-parallel degree", default=1.0)
    expert_tensor: Num = count("tensor-parallel degree inside an expert", default=1.0)
    imbalance: Num = quantity(
        "",
        "tokens on the busiest expert rank over the mean; 1 = balanced routing, assumed unless given",
        default=1.0,
        low=1.0,
    )
    pipeline: Num = count("pipeline stages", default=1.0)
    virtual_stages: Num = count("model chunks per stage", default=1.0)
    zero: Num = quantity("", "ZeRO stage 0-3 (3 = FSDP full shard)", default=1.0, high=3.0, whole=True)
    shard: Num = quantity("", "devices that share one copy of sharded states; 0 = all of data x context", default=0.0)
    micro_batch: Num = count("sequences of one microbatch on one data-parallel rank", default=1.0)
    recompute: Num = quantity("", "0 none, 1 selective (attention core), 2 full", default=0.0, high=2.0, whole=True)
    modules: tuple[str, ...] = ("attention_core",)
    flash: Num = switch("1: fused attention that stores no score matrix", default=1.0)
    fused_loss: Num = switch("1: cross-entropy in chunks fused with the head (Liger): no logits are kept")
    cuda_graphs: Num = switch("1: kernels are launched as graphs")
    schedule: str = "1f1b"
    overlap: Overlap = field(default_factory=Overlap)
    order: tuple[str, ...] = ORDER

    def at_least(self, name: str, threshold: float) -> Num:
        """1.0 where the whole-number field `name` is at least `threshold`, else 0.0; worked out once per strategy.

        >>> from tradespace.inputs import load
        >>> load.strategy("zero=2,global_batch=8", cluster=load.cluster("dgx-h100")).at_least("zero", 2.0)
        1.0
        """
        known: dict[tuple[str, float], Num] = self.__dict__.setdefault("_at_least", {})
        if (name, threshold) not in known:
            known[name, threshold] = at_least(getattr(self, name), threshold)
        return known[name, threshold]
