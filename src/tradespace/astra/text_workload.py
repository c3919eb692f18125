"""Text workloads of ASTRA-sim's first version (COMET's era), in two readings.

- `native`: as version 1 means them: times in ns, NONE is nothing, collectives run on the dims of their parallelism,
  the update follows the weight gradient's collective.
- `converter`: as mlc-chakra's text converter hands them to today's ASTRA-sim: times in microseconds, NONE is an
  all-reduce of zero bytes, every collective spans the machine, the update time is dropped.

Source: `astra-sim/astra-sim` version 1 (Workload), `mlcommons/chakra` text converter; totals measured.
Line 1 parallelism and options, line 2 number of layers, then per layer: name, reserved, and time, collective, bytes
of forward, input gradient and weight gradient, then the update time (HYBRID_CUSTOMIZED: and the layer's parallelism).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tradespace.astra.faults import warn
from tradespace.astra.files import MAX_LINE, read_text
from tradespace.astra.iteration import Collective, Compute, Iteration, Operation
from tradespace.astra.plans import MAX_BYTES
from tradespace.errors import InputError, nearest
from tradespace.network.astra import Network

READINGS = ("native", "converter")
MAX_LAYERS = 100_000
MAX_TIME = 1 << 53
KINDS = {
    "NONE": "",
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
CONVERTED = ("MICRO", "DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_DLRM", "HYBRID_DLRM_ENHANCED")
PARALLELISMS = (*CONVERTED, "HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_CUSTOMIZED")


@dataclass(frozen=True)
class Pass:
    """Time of one pass of a layer, and the collective after it ("" for none)."""

    time: int
    kind: str
    bytes: int


@dataclass(frozen=True)
class Layer:
    """One line of the file."""

    name: str
    forward: Pass
    input_grad: Pass
    weight_grad: Pass
    update: int
    parallelism: str


@dataclass(frozen=True)
class TextWorkload:
    """A file as it stands; `options` are the numbers on its first line by name."""

    parallelism: str
    layers: tuple[Layer, ...]
    options: dict[str, tuple[int, ...]] = field(default_factory=dict)


def read_workload(path: str | Path) -> TextWorkload:
    """A text workload, checked."""
    texts = [line for line in read_text(path).splitlines() if line.strip()]
    if len(texts) > MAX_LAYERS + 2 or any(len(text) > MAX_LINE for text in texts):
        raise InputError(f"{path}: more than {MAX_LAYERS} layers, or a line of more than {MAX_LINE} characters")
    lines = [text.split() for text in texts]
    if len(lines) < 3:
        raise InputError(f"{path}: a text workload has a parallelism, a number of layers and at least one layer")
    parallelism, options = _first_line(lines[0], path)
    count = _whole(lines[1][0], f"{path}, number of layers", MAX_LAYERS)
    if count != len(lines) - 2:
        raise InputError(f"{path}: {count} layers are announced, {len(lines) - 2} lines follow")
    layers = tuple(_layer(words, parallelism, f"{path}, layer {i}") for i, words in enumerate(lines[2:], 1))
    return TextWorkload(parallelism, layers, options)


def _first_line(words: list[str], path: str | Path) -> tuple[str, dict[str, tuple[int, ...]]]:
    if words[0] not in PARALLELISMS:
        raise InputError(f"{path}: parallelism {words[0][:40]!r} is not known{nearest(words[0][:40], PARALLELISMS)}")
    options: dict[str, list[int]] = {}
    name = "last_bottom_layer"
    for word in words[1:]:
        if re.fullmatch(r"-?\d{1,9}", word):
            options.setdefault(name, []).append(int(word))
        elif word.endswith(":"):
            name = word[:-1]
            options[name] = []
        else:
            raise InputError(f"{path}: {word[:40]!r} on the first line is neither `name:` nor a whole number")
    if options.get("checkpoints", [0])[1:] or options.get("checkpoint_initiates", [0])[1:]:
        raise InputError(f"{path}: recomputation between checkpoints is not read; list 0 checkpoints")
    if words[0].startswith("HYBRID_DLRM") and not options.get("last_bottom_layer"):
        raise InputError(f"{path}: {words[0]} needs the index of the last bottom layer on its first line")
    if words[0].startswith("HYBRID_TRANSFORMER") and not options.get("model_parallel_NPU_group"):
        raise InputError(f"{path}: {words[0]} needs `model_parallel_NPU_group: k` on its first line")
    return words[0], {name: tuple(values) for name, values in options.items()}


def _layer(words: list[str], parallelism: str, where: str) -> Layer:
    columns = 13 if parallelism == "HYBRID_CUSTOMIZED" else 12
    if len(words) != columns:
        raise InputError(f"{where}: {len(words)} columns instead of {columns}")
    passes = []
    for at in (2, 5, 8):
        if words[at + 1] not in KINDS:
            word = words[at + 1][:40]
            raise InputError(f"{where}: collective {word!r} is not known{nearest(word, KINDS)}")
        passes.append(
            Pass(_whole(words[at], where, MAX_TIME), KINDS[words[at + 1]], _whole(words[at + 2], where, MAX_BYTES))
        )
    own = words[12] if columns == 13 else parallelism
    if own not in PARALLELISMS or (columns == 13 and own == parallelism):
        raise InputError(f"{where}: parallelism {own[:40]!r} is not known{nearest(own[:40], PARALLELISMS)}")
    forward, input_grad, weight_grad = passes
    return Layer(words[0], forward, input_grad, weight_grad, _whole(words[11], where, MAX_TIME), own)


def _whole(word: str, where: str, high: int) -> int:
    if not re.fullmatch(r"\d{1,19}", word) or int(word) > high:
        raise InputError(f"{where}: {word[:40]!r} is not a whole number between 0 and {high}")
    return int(word)


def to_iteration(workload: TextWorkload, net: Network, reading: str = "native", unit: float = 1e-9) -> Iteration:
    """The iteration that every rank runs; `unit` (s) is that of the times in the native reading.

    >>> from tradespace.network.astra import Dim
    >>> one = Layer("a", Pass(5, "", 0), Pass(4, "", 0), Pass(3, "all_reduce", 64), 1, "DATA")
    >>> net = Network((Dim("Ring", 4, 50, 500),))
    >>> [step.name for step in to_iteration(TextWorkload("DATA", (one,)), net).ranks[0]]
    ['a forward', 'a weight gradient', 'a weight gradient all_reduce', 'a update']
    """
    if reading not in READINGS:
        raise InputError(f"reading {reading!r} is not known{nearest(reading, READINGS)}")
    builder = Builder(workload, net, reading == "converter", unit)
    if workload.parallelism == "MICRO":
        for layer in workload.layers:
            builder.communicate(f"{layer.name} collective", layer.weight_grad, (), builder.dims(layer, data=True))
    elif workload.parallelism == "DATA" or builder.dlrm:
        builder.backward_weights_first(builder.forward())
    else:
        builder.backward(builder.forward())
    if not builder.steps:
        raise InputError("the workload has nothing to run in this reading")
    return Iteration((tuple(builder.steps),) * net.size)


class Builder:
    """Turns layers into operations in the order of their ids."""

    def __init__(self, workload: TextWorkload, net: Network, converter: bool, unit: float) -> None:
        if converter and workload.parallelism not in CONVERTED:
            known = ", ".join(CONVERTED)
            raise InputError(f"{workload.parallelism} is not supported by the converter; it reads {known}")
        if converter:
            warn(
                "converter reading: every collective spans the whole machine, NONE is an all-reduce of zero bytes "
                "that still costs latency, update times are dropped; the native reading has proper groups"
            )
        self.workload, self.net, self.converter = workload, net, converter
        self.unit = 1e-6 if converter else unit
        self.steps: list[Operation] = []
        self.dlrm = workload.parallelism.startswith("HYBRID_DLRM")
        self.bottom = (workload.options.get("last_bottom_layer") or (-1,))[0] if self.dlrm else -1

    def compute(self, name: str, time: int, after: tuple[int, ...]) -> tuple[int, ...]:
        """Add a compute operation; what follows waits for it."""
        after = tuple(dict.fromkeys(after))
        self.steps.append(Compute(len(self.steps) + 1, name, after, duration=time * self.unit))
        return (len(self.steps),)

    def communicate(self, name: str, what: Pass, after: tuple[int, ...], dims: tuple[bool, ...]) -> tuple[int, ...]:
        """Add a collective, if this reading has one; what follows waits for it."""
        kind = what.kind or ("all_reduce" if self.converter and not self.dlrm else "")
        if not kind or (dims and not any(dims)):
            return after
        size = what.bytes if what.kind else 0
        self.steps.append(Collective(len(self.steps) + 1, f"{name} {kind}", kind, size, None, after, dims))
        return (len(self.steps),)

    def dims(self, layer: Layer, data: bool) -> tuple[bool, ...]:
        """Network dims of the data-parallel or the model-parallel collectives of a layer; () for all of them."""
        count, kind = len(self.net.dims), layer.parallelism
        if self.converter or kind in ("MICRO", "DATA", "MODEL") or kind.startswith("HYBRID_DLRM"):
            return ()
        inner = 1
        if kind.startswith("HYBRID_TRANSFORMER"):
            inner, ranks, group = 0, 1, (self.workload.options.get("model_parallel_NPU_group") or (0,))[0]
            while inner < count and ranks < group:
                ranks *= self.net.dims[inner].size
                inner += 1
            if ranks != group:
                raise InputError(f"model_parallel_NPU_group: {group} is not the product of the first network dims")
        inner_is_data = kind == "HYBRID_DATA_MODEL"
        return tuple((dim < inner) == (data == inner_is_data) for dim in range(count))

    def exchanges(self, layer: Layer, data: bool) -> bool:
        """Whether a layer has data-parallel (weight gradient) or model-parallel (other) collectives."""
        return layer.parallelism != ("MODEL" if data else "DATA")

    def forward(self) -> tuple[int, ...]:
        """Per layer: compute, then its collective, which the next layer waits for.

        DLRM waits for no collective but that of the embedding (layer 0), and only before the last bottom layer.
        """
        after: tuple[int, ...] = ()
        embedding: tuple[int, ...] = ()
        for i, layer in enumerate(self.workload.layers):
            after = self.compute(
                f"{layer.name} forward", layer.forward.time, after + (embedding if i == self.bottom else ())
            )
            if self.exchanges(layer, data=False):
                done = self.communicate(f"{layer.name} forward", layer.forward, after, self.dims(layer, data=False))
                embedding = done if i == 0 else embedding
                after = after if self.dlrm else done
        return after

    def backward(self, after: tuple[int, ...]) -> None:
        """Input gradient, its collective, and beside that the weight gradient; the layer below waits for all but its
        collective. The first layer has no input-gradient collective.
        """
        for i, layer in reversed(list(enumerate(self.workload.layers))):
            ready = self.compute(f"{layer.name} input gradient", layer.input_grad.time, after)
            done = ready
            if i > 0 and self.exchanges(layer, data=False):
                done = self.communicate(
                    f"{layer.name} input gradient", layer.input_grad, ready, self.dims(layer, data=False)
                )
            after = tuple(dict.fromkeys(self.weight_gradient(layer, ready) + done))

    def backward_weights_first(self, after: tuple[int, ...]) -> None:
        """DATA and DLRM: weight gradient, its collective, then the input gradient, except for the first layer.

        The embedding of DLRM gets its input gradients by a collective once the layer above the bottom is through.
        """
        embedding: tuple[int, ...] = ()
        for i, layer in reversed(list(enumerate(self.workload.layers))):
            after = self.weight_gradient(layer, after + (embedding if i == 0 else ()))
            if i > 0:
                after = self.compute(f"{layer.name} input gradient", layer.input_grad.time, after)
            if self.dlrm and i == self.bottom + 1:
                first = self.workload.layers[0]
                embedding = self.communicate(f"{first.name} input gradient", first.input_grad, after, ())

    def weight_gradient(self, layer: Layer, after: tuple[int, ...]) -> tuple[int, ...]:
        """Weight gradient, its collective and the update; returns the compute operation."""
        ready = self.compute(f"{layer.name} weight gradient", layer.weight_grad.time, after)
        done = ready
        if self.exchanges(layer, data=True):
            done = self.communicate(
                f"{layer.name} weight gradient", layer.weight_grad, ready, self.dims(layer, data=True)
            )
        if layer.update and not self.converter:
            self.compute(f"{layer.name} update", layer.update, done)
        return ready
