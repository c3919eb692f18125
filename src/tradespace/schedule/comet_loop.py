"""COMET's training loop: layers one after another, collectives that block or run beside what follows.

Kadiyala et al. 2022 (arXiv 2211.16648) and the loop of ASTRA-sim's workload layer (hybrid-parallel Transformer with
forward in the backward pass, hybrid-parallel DLRM). Forward collectives block. Backward, layer by layer from the last:
a stack's forward again where it is recomputed, input gradient, its collective is issued (last in, first out), weight
gradient, its collective joins a queue (first in, first out), then the input gradient's collective is waited for. The
queue is waited for at the end of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tradespace.num import Num, maximum

SOURCES = ("Kadiyala et al., COMET, arXiv 2211.16648", "astra-sim-roofline, workload layer (training loop)")
Posted = tuple[tuple[str, Num], ...]


@dataclass(frozen=True, slots=True, eq=False)
class LayerTimes:
    """Seconds of one layer: compute by phase; exchanges that its forward and its input gradient wait for; the exchange
    of its weight gradient. `forward_posted` and `input_grad_posted`: (layer that waits for it, seconds) of exchanges
    that run beside the layers until then."""

    name: str
    forward: Num
    input_grad: Num
    weight_grad: Num
    forward_wait: Num = 0.0
    input_grad_wait: Num = 0.0
    queued: Num = 0.0
    forward_posted: Posted = ()
    input_grad_posted: Posted = ()


@dataclass(frozen=True, slots=True, eq=False)
class StackTimes:
    """Layers that run `count` times over; `restore` = seconds to bring back the checkpoint before a recomputation."""

    layers: tuple[LayerTimes, ...]
    count: Num
    restore: Num = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LoopTimes:
    """Seconds of one step: compute by phase, `exposed` = waiting for exchanges of activations by phase, `late` =
    waiting for exchanges of weight gradients."""

    forward: Num
    recompute: Num
    input_grad: Num
    weight_grad: Num
    exposed: dict[str, Num]
    late: Num

    @property
    def total(self) -> Num:
        """Seconds of the step."""
        compute = self.forward + self.recompute + self.input_grad + self.weight_grad
        return compute + sum(self.exposed.values(), 0.0) + self.late


@dataclass(frozen=True, slots=True, eq=False)
class Switches:
    """1 on, 0 off: recomputation, input-gradient exchanges beside weight gradients, weight-gradient ones beside all."""

    recompute: Num = 0.0
    input_grad: Num = 1.0
    weight_grad: Num = 1.0


def comet_loop(stacks: Sequence[StackTimes], switches: Switches) -> LoopTimes:
    """The step's seconds by part.

    One pass through each stack suffices: a queue that holds B seconds of work holds max(B + W - T, c) after a pass of
    T seconds that adds W, c being what a pass leaves of an empty one (Lindley 1952), and after n passes
    max(B + n (W - T), c + max(0, (n - 1) (W - T))).

    >>> layer = LayerTimes("a", 1.0, 1.0, 1.0, forward_wait=0.5, input_grad_wait=1.5, queued=4.0)
    >>> found = comet_loop([StackTimes((layer,), 2.0)], Switches())
    >>> found.forward, found.exposed, found.late, found.total
    (2.0, {'forward': 1.0, 'recompute': 0.0, 'input_grad': 1.0}, 5.0, 13.0)
    """
    parts: dict[str, Num] = {"forward": 0.0, "recompute": 0.0, "input_grad": 0.0, "weight_grad": 0.0}
    exposed: dict[str, Num] = {"forward": 0.0, "recompute": 0.0, "input_grad": 0.0}
    late: Num = 0.0
    queue: Num = 0.0
    for stack in reversed(stacks):
        compute, waiting = forward_pass(stack.layers)
        back = backward_pass(stack, switches, switches.recompute * (compute + waiting + stack.restore))
        n, drift = stack.count, back.queued - back.time
        queue = maximum(queue + n * drift, back.left + maximum((n - 1.0) * drift, 0.0))
        for name, seconds in (
            ("forward", compute),
            ("recompute", switches.recompute * compute),
            ("input_grad", total_of(stack.layers, "input_grad")),
            ("weight_grad", total_of(stack.layers, "weight_grad")),
        ):
            parts[name] = parts[name] + n * seconds
        exposed["forward"] = exposed["forward"] + n * waiting
        exposed["recompute"] = exposed["recompute"] + n * (switches.recompute * (waiting + stack.restore))
        exposed["input_grad"] = exposed["input_grad"] + n * back.waiting
        late = late + n * back.blocked
    return LoopTimes(**parts, exposed=exposed, late=late + queue)


def total_of(layers: tuple[LayerTimes, ...], phase: str) -> Num:
    """Seconds of one phase in all layers of a stack."""
    return sum((getattr(layer, phase) for layer in layers), 0.0)


def forward_pass(layers: tuple[LayerTimes, ...]) -> tuple[Num, Num]:
    """Seconds that one pass computes, and that it waits for exchanges."""
    now: Num = 0.0
    waiting: Num = 0.0
    pending: dict[str, Num] = {}
    for layer in layers:
        wait = maximum(pending.pop(layer.name, 0.0) - now, 0.0)
        waiting = waiting + wait + layer.forward_wait
        now = now + wait + layer.forward
        for name, seconds in layer.forward_posted:
            pending[name] = maximum(pending.get(name, 0.0), now + seconds)
        now = now + layer.forward_wait
    for done in pending.values():
        waiting, now = waiting + maximum(done - now, 0.0), maximum(done, now)
    return total_of(layers, "forward"), waiting


@dataclass(frozen=True, slots=True, eq=False)
class Backward:
    """One backward pass through a stack that starts with an empty queue: its length, seconds `queued` in it, `left` of
    them at its end, `waiting` for activation exchanges, `blocked` by weight-gradient exchanges that may not overlap."""

    time: Num
    queued: Num
    left: Num
    waiting: Num
    blocked: Num


def backward_pass(stack: StackTimes, switches: Switches, start: Num) -> Backward:
    """One backward pass; `start` = seconds of recomputation before the first gradient.

    Exchanges that a later layer waits for go before the queue and delay it.
    """
    now, last = start, start
    queued: Num = 0.0
    left: Num = 0.0
    waiting: Num = 0.0
    blocked: Num = 0.0
    pending: dict[str, Num] = {}
    for layer in reversed(stack.layers):
        wait = maximum(pending.pop(layer.name, 0.0) - now, 0.0)
        at_once = (1.0 - switches.input_grad) * layer.input_grad_wait
        now = now + (wait + layer.input_grad)
        posted = sum((seconds for _, seconds in layer.input_grad_posted), 0.0)
        left, last = maximum(left - (now - last), 0.0) + posted, now
        for name, seconds in layer.input_grad_posted:
            pending[name] = maximum(pending.get(name, 0.0), now + seconds)
        done = now + layer.input_grad_wait
        blocking = (1.0 - switches.weight_grad) * layer.queued
        now = now + (at_once + layer.weight_grad + blocking)
        beside = switches.weight_grad * layer.queued
        left, last = maximum(left - (now - last), 0.0) + beside, now
        behind = maximum(done - now, 0.0)
        now = now + behind
        queued = queued + (posted + beside)
        waiting = waiting + (wait + at_once + behind)
        blocked = blocked + blocking
    return Backward(now, queued, maximum(left - (now - last), 0.0), waiting, blocked)
