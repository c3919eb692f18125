"""Shared by the tests of the ASTRA-sim room: the traces, unpacked once."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "astra"


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that holds gpt16/ and gpt16pp/."""
    folder = tmp_path_factory.mktemp("traces")
    for name in ("gpt16", "gpt16pp"):
        with tarfile.open(DATA / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Writes a network YAML and a system JSON: ring on every dim, roofline of an A100 unless told otherwise."""

    def write(
        kinds: str, sizes: Sequence[int], bandwidth: Sequence[float], latency: Sequence[float], **system: object
    ) -> tuple[Path, Path]:
        network, machine = tmp_path / "network.yml", tmp_path / "system.json"
        names = kinds.split("_")
        network.write_text(
            "# dim0 first\n"
            + "".join(
                f"{key}: [ {', '.join(map(str, column))} ]  # per dim\n"
                for key, column in (
                    ("topology", names),
                    ("npus_count", sizes),
                    ("bandwidth", bandwidth),
                    ("latency", latency),
                )
            )
        )
        values: dict[str, object] = {
            "scheduling-policy": "LIFO",
            "endpoint-delay": 10,
            "active-chunks-per-dimension": 1,
            "preferred-dataset-splits": 1,
            "collective-optimization": "localBWAware",
            "local-mem-bw": 1935,
            "peak-perf": 312,
            "roofline-enabled": 1,
            "boost-mode": 0,
        }
        for name in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
            values[f"{name}-implementation"] = ["ring"] * len(names)
        values |= {key.replace("_", "-"): value for key, value in system.items()}
        machine.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))
        return network, machine

    return write
