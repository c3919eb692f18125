"""Round trip with mlc-chakra's own decoder, encoder and text converter: an opt-in check, not part of the test suite.

    make peer

Without mlc-chakra it says so and ends well. Exit status 1 if a file means something else to the two programs.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from tradespace.astra import (
    AstraWarning,
    Collective,
    Compute,
    Iteration,
    Machine,
    Receive,
    RemoteAccess,
    Send,
    write_iteration,
)
from tradespace.astra.chakra import COMM_TYPES, Node, decode
from tradespace.astra.export import write_traces
from tradespace.astra.from_step import from_step
from tradespace.astra.iteration import to_traces
from tradespace.astra.text_workload import read_workload, to_iteration
from tradespace.astra.traces import Reader, read_traces
from tradespace.inputs import load
from tradespace.network.astra import COLLECTIVES, Dim, Network, System
from tradespace.predict import predict

NETWORK = Network((Dim("Ring", 4, 50, 500),))
STEPS = (
    ("llama-3.1-8b", "tp=2,cp=2,pp=2,global_batch=4", 8),
    ("mixtral-8x7b", "pp=2,ep=4,global_batch=16", 16),
    ("dlrm-dcnv2", "global_batch=4096", 8),
)
MACHINE = Machine(System(dict.fromkeys(COLLECTIVES, ("ring",)), 10, 1600), True, 312e12)


def iteration() -> Iteration:
    """Every kind of operation, with large and small numbers."""

    def rank(number: int) -> tuple[Compute | Collective | Send | Receive | RemoteAccess, ...]:
        pair = (0, 2) if number % 2 == 0 else (1, 3)
        message = Send(7, "s", number + 2, 300, 99) if number < 2 else Receive(7, "r", number - 2, 300, 99)
        kinds = [Collective(10 + i, kind, kind, 1 << (20 + i), pair, (1,)) for i, kind in enumerate(COLLECTIVES)]
        return (
            Compute(1, "matmul", (), 2**50, 2**33, 12.3e-3),
            Collective(2, "native", "all_reduce", 4096, None, (1,), (True,)),
            RemoteAccess(3, "load", 2**34),
            RemoteAccess(4, "store", 5, True, (3, 2)),
            message,
            *kinds,
        )

    return Iteration(tuple(rank(number) for number in range(4)))


def as_theirs(message: Any) -> dict[str, Any]:
    """What their decoder found in a node."""
    values: dict[str, Any] = {}
    for attribute in message.attr:
        which = attribute.WhichOneof("value")
        value = getattr(attribute, which)
        values[attribute.name] = tuple(value.values) if which.endswith("_list") else value
    deps = tuple(message.ctrl_deps) + tuple(message.data_deps)
    return {"id": message.id, "name": message.name, "kind": message.type, "deps": deps,
            "duration": message.duration_micros * 1000, **values}  # fmt: skip


def as_ours(node: Node, variable: dict[str, str | int]) -> dict[str, Any]:
    """What the same node is to us, in their terms."""
    values: dict[str, Any] = {"id": node.id, "name": node.name, "kind": node.kind, "deps": node.deps}
    values |= {"duration": node.duration, "is_cpu_op": node.cpu}
    if node.kind == 4:
        values |= {"num_ops": node.ops, "tensor_size": node.size}
    elif node.kind in (2, 3):
        values["tensor_size"] = node.size
    else:
        values["comm_size"] = node.size
    if node.comm:
        values["comm_type"] = COMM_TYPES.index(node.comm)
    if node.dims:
        values["involved_dim"] = node.dims
    return values | {key: value for key, value in variable.items() if value != ""}


def check_files(folder: Path, ranks: int) -> int:
    """Our files in their decoder, and their encoding of the same nodes in our reader."""
    schema = importlib.import_module("chakra.schema.protobuf.et_def_pb2")
    library = importlib.import_module("chakra.src.third_party.utils.protolib")
    expected = read_traces(folder, ranks)
    count = 0
    for rank in range(ranks):
        nodes, metadata, node = [], schema.GlobalMetadata(), schema.Node()
        with (folder / f"step.{rank}.et").open("rb") as file:
            assert library.decodeMessage(file, metadata)
            while library.decodeMessage(file, node):
                nodes.append(schema.Node.FromString(node.SerializeToString()))
        with (folder / "theirs").open("wb") as file:
            library.encodeMessage(file, metadata)
            for message in nodes:
                library.encodeMessage(file, message)
                mine, variable, _ = decode(message.SerializeToString())
                assert as_theirs(message) == as_ours(mine, variable), (as_theirs(message), as_ours(mine, variable))
                count += 1
        again = Reader().read((folder / "theirs").read_bytes(), "theirs")
        assert again.program.shape == expected[rank].program.shape
        assert (again.comms, again.peers) == (expected[rank].comms, expected[rank].peers)
        assert len(nodes) == len(expected[rank].program.nodes)
    return count


def check_steps(folder: Path) -> int:
    """Exported steps in their decoder: a pipeline with context ranks, a mixture of experts, a recommendation model."""
    count = 0
    for number, (model, strategy, devices) in enumerate(STEPS):
        cluster = load.cluster("dgx-h100", devices=devices)
        found = from_step(predict(load.model(model), cluster, load.strategy(strategy, cluster=cluster)))
        out = folder / str(number)
        write_traces(found.traces, found.groups, out, found.network, found.machine)
        count += check_files(out, devices)
    return count


def check_texts(folder: Path) -> int:
    """Their conversion of a text workload, and our `converter` reading of it: the same operations in the same order."""
    cases = ["DATA", "MODEL", "MICRO", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_DLRM 2",
             "HYBRID_DLRM_ENHANCED 1"]  # fmt: skip
    full = [f"l{i} -1 50{i} ALLTOALL 10{i} 40{i} ALLGATHER 20{i} 30{i} ALLREDUCE 30{i} 10" for i in range(6)]
    # Their DLRM conversion needs the exchange of the embedding, the first layer.
    sparse = ["l0 -1 500 ALLTOALL 64 400 ALLTOALL 64 300 NONE 0 10"]
    sparse += [f"l{i} -1 500 NONE 0 400 NONE 0 300 REDUCESCATTER {2 << i} 10" for i in range(1, 4)]
    for number, (first, rows) in enumerate((first, rows) for first in cases for rows in (full, sparse)):
        text, out = folder / f"{number}.txt", folder / str(number)
        out.mkdir()
        text.write_text("\n".join([first, str(len(rows)), *rows]) + "\n")
        command = [
            sys.executable,
            "-m",
            "chakra.src.converter.converter",
            "--log-filename",
            str(folder / "log"),
            "Text",
        ]
        command += ["--input", str(text), "--output", str(out / "w"), "--num-npus", "4", "--num-passes", "1"]
        subprocess.run(command, check=True, capture_output=True)
        mine = to_traces(to_iteration(read_workload(text), NETWORK, "converter"))[0]
        for theirs, ours in zip(read_traces(out, 4), mine, strict=True):
            assert theirs.program.shape == ours.program.shape, (first, rows[0])
    return 2 * len(cases)


def main() -> None:
    """Run both checks, or say why not."""
    if importlib.util.find_spec("chakra") is None:
        print("skipped: mlc-chakra is not installed (pip install --no-deps mlc-chakra, with protobuf >= 6.31.1)")
        return
    warnings.simplefilter("ignore", AstraWarning)
    with tempfile.TemporaryDirectory() as name:
        write_iteration(iteration(), name, NETWORK, MACHINE)
        nodes = check_files(Path(name), NETWORK.size)
    with tempfile.TemporaryDirectory() as name:
        exported = check_steps(Path(name))
    with tempfile.TemporaryDirectory() as name:
        texts = check_texts(Path(name))
    print(
        f"{nodes} nodes of a made-up iteration and {exported} of exported steps mean the same to mlc-chakra in both "
        "directions, "
        f"{texts} text workloads convert to the same graph"
    )


if __name__ == "__main__":
    main()
