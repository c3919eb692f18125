"""Which ranks form which group: a strategy's degrees as axes of the rank number, inner to outer.

The strategy's `order` is the order of the axes, as for placement; experts fold the devices of a stage a second way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tradespace.errors import InputError
from tradespace.network.folding import FOLDED, expert_data, expert_shard
from tradespace.num import Num
from tradespace.step import Step

DENSE = {
    "tensor": ("tensor",),
    "context": ("context",),
    "expert": (),
    "data": ("shard", "replica"),
    "pipeline": ("pipeline",),
}
"""Entry of the strategy's order -> axes of the dense layers' groups; those of the experts: `folding.FOLDED`."""


@dataclass(frozen=True)
class Grid:
    """Axes (name, degree), inner to outer; their product is the number of ranks.

    >>> grid = Grid((("tensor", 2), ("data", 3)))
    >>> grid.members(("data",), 1), grid.stride("data"), grid.size
    ((1, 3, 5), 2, 6)
    """

    axes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Number of ranks."""
        return math.prod(degree for _, degree in self.axes)

    def degree(self, name: str) -> int:
        """Length of an axis."""
        return dict(self.axes)[name]

    def stride(self, name: str) -> int:
        """Distance in rank numbers between neighbours on an axis."""
        names = [axis for axis, _ in self.axes]
        return math.prod(degree for _, degree in self.axes[: names.index(name)])

    def place(self, name: str, rank: int) -> int:
        """Position of a rank on an axis."""
        return rank // self.stride(name) % self.degree(name)

    def members(self, names: Sequence[str], rank: int) -> tuple[int, ...]:
        """Ranks that differ from `rank` on the named axes alone, in ascending order."""
        found = [rank]
        for name in names:
            stride, degree = self.stride(name), self.degree(name)
            found = [other + (i - other // stride % degree) * stride for i in range(degree) for other in found]
        return tuple(sorted(found))


def grids(step: Step, experts: bool) -> Mapping[str, Grid]:
    """The grid of each group's name: of the dense layers, and of the experts if there are some.

    >>> from tradespace.inputs import load
    >>> from tradespace.predict import predict
    >>> cluster = load.cluster("dgx-h100", devices=16)
    >>> strategy = load.strategy("tp=2,pp=2,global_batch=64", cluster=cluster)
    >>> grids(predict(load.model("llama-3.1-8b"), cluster, strategy), False)["tensor"].axes
    (('tensor', 2), ('context', 1), ('shard', 4), ('replica', 1), ('pipeline', 2))
    """
    strategy, data = step.strategy, float(step.data)
    inside = max(float(strategy.shard) / float(strategy.context), 1.0) if float(strategy.shard) else data
    degrees: dict[str, Num] = {
        "tensor": strategy.tensor,
        "context": strategy.context,
        "shard": inside,
        "replica": data / inside,
        "pipeline": strategy.pipeline,
    }
    found = dict.fromkeys(degrees, _grid(step, DENSE, degrees))
    if experts:
        same = float(expert_shard(strategy, data))
        folded: dict[str, Num] = {
            "expert_tensor": strategy.expert_tensor,
            "expert": strategy.expert,
            "expert_shard": same,
            "expert_replica": float(expert_data(strategy, data)) / same,
        }
        other = _grid(step, FOLDED, {**folded, "pipeline": strategy.pipeline})
        if other.stride("pipeline") != found["pipeline"].stride("pipeline"):
            raise InputError(
                f"strategy: with order={'-'.join(strategy.order)} the experts' groups would cross pipeline stages; "
                "put pipeline last"
            )
        found |= dict.fromkeys(folded, other)
    return found


def loop_grids(step: Step) -> Mapping[str, Grid]:
    """The grids of COMET's loop: tensor inside, data outside; all devices together."""
    tensor, data = int(float(step.strategy.tensor)), int(float(step.data))
    return {"tensor": (both := Grid((("tensor", tensor), ("data", data)))), "data": both, "all": _all(tensor * data)}


def _all(devices: int) -> Grid:
    return Grid((("all", devices),))


def _grid(step: Step, axes: Mapping[str, tuple[str, ...]], degrees: Mapping[str, Num]) -> Grid:
    found = [(name, float(degrees[name])) for entry in step.strategy.order for name in axes[entry]]
    for name, degree in found:
        if degree != int(degree):
            raise InputError(f"strategy: {name} = {degree:g} ranks, but a group has a whole number of them")
    grid = Grid(tuple((name, int(degree)) for name, degree in found))
    if grid.size != int(float(step.cluster.devices)):
        raise InputError(f"strategy: its groups take {grid.size} devices, the job has {float(step.cluster.devices):g}")
    return grid
