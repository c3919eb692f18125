"""Text workloads of version 1 in both readings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tradespace.astra import replay
from tradespace.astra.collective import time_of
from tradespace.errors import InputError
from tradespace.network.astra import COLLECTIVES, Dim, Network, System

pytestmark = pytest.mark.filterwarnings("ignore::tradespace.astra.AstraWarning")
Config = Callable[..., tuple[Path, Path]]
MIB = 1 << 20
GRID = (Dim("Switch", 4, 300, 100), Dim("Switch", 4, 50, 1000))
NETWORK = ("Switch_Switch", (4, 4), (300, 50), (100, 1000))
SIMPLE = [f"l{i} -1 500 NONE 0 400 NONE 0 300 ALLREDUCE {2 ** (20 + i)} 0" for i in range(4)]
ATTENTION = f"att -1 900 ALLREDUCE {16 * MIB} 900 ALLREDUCE {16 * MIB} 900 ALLREDUCE {4 * MIB} 10"
MLP = f"mlp -1 1800 ALLREDUCE {16 * MIB} 1800 ALLREDUCE {16 * MIB} 1800 ALLREDUCE {8 * MIB} 10"


def write(folder: Path, first: str, rows: list[str], count: int | None = None) -> Path:
    path = folder / "workload.txt"
    path.write_text("\n".join([first, str(len(rows) if count is None else count), *rows]) + "\n")
    return path


def total(path: Path, paths: tuple[Path, Path], reading: str) -> int:
    result = replay(path, *paths, reading=reading)
    assert len({times["total"] for times in result["ranks"].values()}) == 1
    return int(result["total_ns"])


@pytest.mark.parametrize(
    ("first", "rows", "expected"),
    [
        ("HYBRID_DATA_MODEL", [ATTENTION, MLP] * 4, 34070793),
        ("DATA", SIMPLE, 4458818),
        ("HYBRID_DATA_MODEL", SIMPLE, 5057058),
        ("HYBRID_MODEL_DATA", SIMPLE, 5057058),
    ],
)
def test_the_converter_reading_is_exact(
    tmp_path: Path, config: Config, first: str, rows: list[str], expected: int
) -> None:
    paths = config(*NETWORK, preferred_dataset_splits=4, local_mem_bw=1600, roofline_enabled=0)
    assert total(write(tmp_path, first, rows), paths, "converter") == expected


def dim_time(dim: int, size: int) -> int:
    system = System(dict.fromkeys(COLLECTIVES, ("ring",)), memory_bandwidth=1600)
    return time_of(Network((GRID[dim],)), system, "all_reduce", size)


@pytest.mark.parametrize(
    ("parallelism", "model_dim", "data_dim"),
    [
        ("HYBRID_DATA_MODEL", 1, 0),
        ("HYBRID_MODEL_DATA", 0, 1),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 4 checkpoints: 0 checkpoint_initiates: 0", 0, 1),
    ],
)
def test_the_native_reading_knows_groups_units_and_none(
    tmp_path: Path, config: Config, parallelism: str, model_dim: int, data_dim: int
) -> None:
    paths = config(*NETWORK, local_mem_bw=1600, roofline_enabled=0)
    row = f"l -1 500 ALLREDUCE {MIB} 400 NONE 0 300 ALLREDUCE {2 * MIB} 20"
    expected = 500 + dim_time(model_dim, MIB) + 400 + 300 + dim_time(data_dim, 2 * MIB) + 20
    assert total(write(tmp_path, parallelism, [row]), paths, "native") == expected


def test_customized_layers_have_their_own_parallelism(tmp_path: Path, config: Config) -> None:
    paths = config(*NETWORK, local_mem_bw=1600, roofline_enabled=0)
    row = f"l -1 500 ALLREDUCE {MIB} 400 NONE 0 300 NONE 0 0 HYBRID_MODEL_DATA"
    assert total(write(tmp_path, "HYBRID_CUSTOMIZED", [row]), paths, "native") == 1200 + dim_time(0, MIB)


def test_dlrm_exchanges_embeddings_beside_the_bottom(tmp_path: Path, config: Config) -> None:
    paths = config(*NETWORK, local_mem_bw=1600, roofline_enabled=0)
    rows = [
        f"emb -1 10 ALLTOALL {MIB} 0 ALLTOALL {MIB} 10 NONE 0 0",
        "bottom -1 10 NONE 0 10 NONE 0 10 NONE 0 0",
        "top -1 900000 NONE 0 10 NONE 0 900000 NONE 0 0",
    ]
    late = total(write(tmp_path, "HYBRID_DLRM 2", rows), paths, "native")
    early = total(write(tmp_path, "HYBRID_DLRM 1", rows), paths, "native")
    system = System(dict.fromkeys(COLLECTIVES, ("ring", "ring")), memory_bandwidth=1600)
    exchange = time_of(Network(GRID), system, "all_to_all", MIB)
    assert early == 10 + exchange + 10 + 900_000 + 900_010 + exchange + 10
    assert late < early


@pytest.mark.parametrize(
    ("first", "rows", "count", "text"),
    [
        ("DATUM", SIMPLE, 4, "did you mean 'DATA'"),
        ("DATA", SIMPLE, 3, "3 layers are announced"),
        ("DATA", ["a -1 1 NONE 0"], 1, "columns"),
        ("DATA", [SIMPLE[0].replace("ALLREDUCE", "ALLRED")], 1, "did you mean"),
        ("DATA", [SIMPLE[0].replace("500", "-5")], 1, "'-5'"),
        ("DATA", [SIMPLE[0].replace("500", "9" * 30)], 1, "whole number"),
        ("HYBRID_TRANSFORMER", SIMPLE, 4, "model_parallel_NPU_group"),
        ("DATA x", SIMPLE, 4, "'x'"),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 3", SIMPLE, 4, "product"),
        ("HYBRID_DLRM", SIMPLE, 4, "bottom layer"),
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 checkpoints: 1 0", SIMPLE, 4, "checkpoints"),
        ("DATA", [], 10**9, "at least one layer"),
        ("MICRO", ["a -1 0 NONE 0 0 NONE 0 0 NONE 0 0"], 1, "nothing to run"),
    ],
)
def test_bad_workloads_are_refused(
    tmp_path: Path, config: Config, first: str, rows: list[str], count: int, text: str
) -> None:
    with pytest.raises(InputError, match=text):
        replay(write(tmp_path, first, rows, count), *config(*NETWORK))


def test_the_converter_refuses_what_it_does_not_know(tmp_path: Path, config: Config) -> None:
    path = write(tmp_path, "HYBRID_TRANSFORMER model_parallel_NPU_group: 4", SIMPLE)
    with pytest.raises(InputError, match="not supported by the converter"):
        replay(path, *config(*NETWORK), reading="converter")
    with pytest.raises(InputError, match="did you mean 'native'"):
        replay(path, *config(*NETWORK), reading="nativ")
