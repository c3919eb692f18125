"""Step: what one training step takes, as pure data with named parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradespace.num import Bool, Num, maximum, shape_of, where

if TYPE_CHECKING:  # inputs stand below: only their names are needed here
    from tradespace.cost.run import Run
    from tradespace.inputs.cluster import Cluster
    from tradespace.inputs.model import Model
    from tradespace.inputs.strategy import Strategy

TIME_PARTS = (
    "forward",
    "input_grad",
    "weight_grad",
    "recompute",
    "optimizer",
    "exposed_tensor",
    "exposed_context",
    "exposed_expert",
    "exposed_data",
    "exposed_pipeline",
    "bubble",
    "offload",
    "other",
)


@dataclass(frozen=True, eq=False)
class Step:
    """One training step; numbers are floats, or arrays with the open axes of the inputs.

    `once` are the seconds of parts that come once per step, `per_microbatch` those of one microbatch (in one layer of a
    model with one kind; in everything else together), `numbers` how many blocks of each kind there are, `p2p` the
    seconds of one exposed transfer, `jitter` the relative time that scale adds; `kernels` the seconds of each kernel of
    one microbatch by kind of block; `stages` the memory parts of each class of stage, in bytes; `illegal` names what is
    wrong with a candidate, True where it applies;
    `recomputed_flops` are those per token of selective and full recomputation.
    """

    model: Model
    cluster: Cluster
    strategy: Strategy
    step_time: Num
    jitter: Num
    once: Mapping[str, Num]
    per_microbatch: Mapping[str, tuple[Num, tuple[Num, ...]]]
    numbers: Mapping[str, Num]
    p2p: Num
    kernels: Mapping[str, tuple[tuple[str, Num], ...]]
    stages: Mapping[str, Mapping[str, Num]]
    memory_total: Num
    capacity: Num
    illegal: Mapping[str, Bool]
    data: Num
    microbatches: Num
    model_flops: Num
    recomputed_flops: tuple[Num, Num]
    parameters: Mapping[str, Num]
    sources: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the candidates: () for one."""
        return shape_of(self.step_time, self.memory_total)

    @property
    def busy(self) -> dict[str, Num]:
        """Seconds of the average stage by part, without the bubble: all stages together over their number."""
        share = self.microbatches / self.strategy.pipeline
        found: dict[str, Num] = dict(self.once)
        for name, (layer, ends) in self.per_microbatch.items():
            found[name] = found.get(name, 0.0) + (self.model.layers * layer + sum(ends, 0.0)) * share
        found["exposed_pipeline"] = 2.0 * self.microbatches * self.strategy.virtual_stages * self.p2p
        found["other"] = found["other"] + self.step_time * (self.jitter / (1.0 + self.jitter))
        return found

    @property
    def time(self) -> dict[str, Num]:
        """Seconds by part (`TIME_PARTS`), summing to `step_time`; the bubble is what the average stage waits."""
        busy = self.busy
        parts = {name: busy.get(name, 0.0) for name in TIME_PARTS}
        idle = self.step_time - sum(busy.values(), 0.0)
        parts["bubble"] = where(self.strategy.pipeline > 1.0, maximum(idle, 0.0), 0.0)
        return parts

    @property
    def legal(self) -> Bool:
        """Whether nothing in `illegal` applies."""
        wrong: Bool = False
        for applies in self.illegal.values():
            wrong = wrong | applies
        return ~wrong if not isinstance(wrong, bool) else not wrong

    @property
    def fits(self) -> Bool:
        """Whether the worst stage's bytes stay below the share of the capacity beyond which runs fail."""
        return self.memory_total <= self.capacity * self.strategy.profile.risk_share

    @property
    def fits_surely(self) -> Bool:
        """Whether it leaves the room that allocators, contexts and communication buffers are known to take."""
        return self.memory_total <= self.capacity * self.strategy.profile.fit_share

    @property
    def reserved(self) -> Num:
        """Bytes that the allocator holds on the worst stage: those of the tensors and its own slack."""
        return self.memory_total * (1.0 + self.strategy.profile.slack)

    @property
    def driver(self) -> Num:
        """Bytes that the driver shows as used: reserved ones, context, communication buffers, libraries."""
        return self.reserved + self.strategy.profile.context

    @property
    def tokens_per_s_per_device(self) -> Num:
        """Trained tokens per second and device."""
        tokens = self.strategy.global_batch * self.model.seq
        return tokens / (self.step_time * self.cluster.devices)

    @property
    def model_flops_per_s_per_device(self) -> Num:
        """Model FLOP/s per device: causal half of attention, head counted, recomputation not."""
        return self.model_flops / (self.step_time * self.cluster.devices)

    @property
    def mfu(self) -> Num:
        """Model FLOPs utilization against the dense 16-bit peak, whatever type the GEMMs run in."""
        return self.model_flops_per_s_per_device / self.cluster.device.peak

    @property
    def kinds(self) -> dict[str, Num]:
        """Compute seconds of the average stage by kind of kernel (matrix, attention, memory_bound), no recompute."""
        share = self.microbatches / self.strategy.pipeline
        found: dict[str, Num] = {}
        for block, kernels in self.kernels.items():
            times = self.numbers[block] * share
            for kind, seconds in kernels:
                found[kind] = found.get(kind, 0.0) + seconds * times
        return found

    @property
    def hfu(self) -> Num:
        """Hardware FLOPs utilization: as MFU with recomputed FLOPs counted."""
        core, full = self.recomputed_flops
        again = where(self.strategy.recompute >= 2.0, full, where(self.strategy.recompute == 1.0, core, 0.0))
        rate = self.model_flops_per_s_per_device + again * self.tokens_per_s_per_device
        return rate / self.cluster.device.peak

    @property
    def power(self) -> Num:
        """Average watts of the whole job at the site's meter."""
        from tradespace.cost.price import site_power

        return site_power(self.cluster)

    @property
    def energy(self) -> Num:
        """Joule of one step."""
        return self.step_time * self.power

    @property
    def cost(self) -> Num:
        """USD of one step; 0 where no price is known."""
        from tradespace.cost.price import rate

        return self.step_time * rate(self.cluster)

    def run(self, tokens: Num) -> Run:
        """The run that trains on `tokens` tokens: days, device-hours, money, energy, failures and checkpoints."""
        from tradespace.cost.run import run

        return run(self, tokens)

    def to_dict(self) -> dict[str, Any]:
        """The document of one candidate (keys of the command line's JSON)."""
        from tradespace.views.documents import step_document

        return step_document(self)

    def explain(self) -> list[dict[str, Any]]:
        """The ladder from ideal FLOP time to the step time: rung, seconds, source."""
        from tradespace.views.documents import ladder

        return ladder(self)

    def plot(self) -> Any:
        """An Altair chart of the time parts and the memory of each stage class."""
        from tradespace.views.figures import step_figure

        return step_figure(self)

    def _repr_html_(self) -> str:
        from tradespace.views.tables import step_html

        return step_html(self)
