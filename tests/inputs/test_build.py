"""From tables to dataclasses: types, nesting, and the sentence of each fault; the schema tells the same."""

from dataclasses import fields

import pytest

from tradespace.errors import InputError
from tradespace.inputs.build import build, schema
from tradespace.inputs.cluster import Cluster, CollectiveCurve, Device, Dim
from tradespace.inputs.model import Model
from tradespace.inputs.schemas import file_schema
from tradespace.inputs.strategy import Overlap, Strategy

MODEL = {"name": "m", "layers": 2, "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "ffn": 256, "vocab": 100}
DEVICE = {
    "key": "d",
    "name": "d",
    "peak": "10 TFLOP/s",
    "on_chip": "1 MB",
    "memory": [{"name": "hbm", "capacity": "10 GB", "bandwidth": "1 TB/s"}],
    "gemm": {"bf16": {"fraction": 0.8, "launch": "5 us"}},
}


def test_numbers_become_floats():
    model = build(Model, {**MODEL, "gated": False, "notes": ["a", "b"]}, "m")
    assert model.layers == 2.0
    assert isinstance(model.layers, float)
    assert model.gated == 0.0
    assert model.notes == ("a", "b")


def test_nested_tables_lists_and_mappings():
    device = build(Device, DEVICE, "d")
    assert device.memory[0].capacity == 1e10
    assert device.gemm["bf16"].launch == 5e-6


def test_series_have_units():
    row = {"sizes": [2, 8], "latency": ["5 us", 1e-5], "fraction": [0.5, 1.2], "root": ["10 us/MB^0.5", 0]}
    curve = build(CollectiveCurve, row, "c")
    assert curve.latency == (5e-6, 1e-5)
    assert curve.root == (pytest.approx(1e-8), 0.0)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({**MODEL, "layer": 3}, "m: unknown key 'layer'; did you mean 'layers'?"),
        ({"name": "m"}, "m: missing layers, hidden, heads, kv_heads, head_dim, ffn, vocab"),
        ({**MODEL, "layers": 2.5}, "m.layers: 2.5 is not a whole number"),
        ({**MODEL, "layers": 0}, "m.layers: 0 is below the least possible value, 1"),
        ({**MODEL, "layers": [1]}, "m.layers: [1] is not a plain number"),
        ({**MODEL, "name": 3}, "m.name: text is needed, not 3"),
        ({**MODEL, "notes": "n"}, "m.notes: a list is needed, not 'n'"),
        ([1], "m: a table of fields is needed, not [1]"),
    ],
)
def test_faults_of_a_model(table, message):
    with pytest.raises(InputError) as fault:
        build(Model, table, "m")
    assert str(fault.value) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory": [{"name": "hbm", "capacity": 80, "bandwidth": "1 TB/s"}]}, "d.memory[hbm].capacity: 80 is below"),
        ({"memory": [{"name": "hbm"}]}, "d.memory[hbm]: missing capacity, bandwidth"),
        ({"memory": {"hbm": {}}}, "d.memory: a list is needed"),
        ({"gemm": {"bf16": {"fraction": 80}}}, "d.gemm.bf16.fraction: 80 is above the largest possible value, 1"),
        ({"gemm": 3}, "d.gemm: a table of named entries is needed, not 3"),
    ],
)
def test_faults_inside_a_device(change, message):
    with pytest.raises(InputError) as fault:
        build(Device, {**DEVICE, **change}, "d")
    assert str(fault.value).startswith(message)


def test_a_latency_in_seconds_by_mistake_is_refused():
    dim = {"name": "fabric", "kind": "switch", "bandwidth": "50 GB/s", "size": 0, "latency": 25}
    with pytest.raises(InputError, match="latency: 25 is above the largest possible value, 1 s"):
        build(Dim, dim, "fabric")


@pytest.mark.parametrize("cls", [Model, Device, Cluster, Strategy, Overlap])
def test_schema_names_every_field(cls):
    found = schema(cls)
    assert list(found["properties"]) == [item.name for item in fields(cls)]
    assert found["additionalProperties"] is False


def test_schema_carries_units_bounds_and_meaning():
    entry = schema(Device)["properties"]["peak"]
    assert entry["x-unit"] == "FLOP/s"
    assert entry["anyOf"][0] == {"type": "number", "minimum": 1e9, "maximum": 1e30}
    assert "dense" in entry["description"]
    assert "peak" in schema(Device)["required"]
    assert schema(Model)["properties"]["layers"]["type"] == "integer"


def test_strategy_files_are_described_in_the_notation():
    found = file_schema("strategy")
    assert found["properties"]["tp"] == found["properties"]["tensor"]
    assert found["properties"]["recompute"]["anyOf"][0] == {"enum": ["none", "selective", "full"]}
    with pytest.raises(InputError, match="no kind of file 'modle'; did you mean 'model'"):
        file_schema("modle")
