"""Study files: expressions, ranges, choices, and one sentence for each fault."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import tradespace as ts
from tradespace.explore.expression import Expression
from tradespace.explore.study_schema import study_schema

BASE: dict[str, Any] = {
    "model": "gpt3-175b",
    "cluster": "dgx-a100",
    "global_batch": 64,
    "axes": {"tensor": [1, 2, 4, 8], "devices": [64, 128]},
}
NAMES = {"a": 2.0, "b": np.array([1.0, 2.0, 3.0]), "word": "gpipe", "dim.size": 8.0, "recompute": 1.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + 2 * b", [4.0, 6.0, 8.0]),
        ("min(a, b) // 2 + 7 % 4", [3.0, 4.0, 4.0]),
        ("a <= b < 3", [False, True, False]),
        ("not a == 2 or b > 2", [False, False, True]),
        ("1 if b > a else -1", [-1.0, -1.0, 1.0]),
        ("word == 'gpipe' and dim.size >= 8", True),
        ("word != 'gpipe'", False),
        ("recompute == 'selective'", True),
        ("a * '70 GB'", 1.4e11),
        ("a < '2 us' or ceil(sqrt(a)) == 2", True),
        ("a / 0", np.inf),
    ],
)
def test_expressions(text: str, value: Any) -> None:
    found = Expression(text, "rule").value(lambda name, _: NAMES[name])
    np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "1 to 1000 characters"),
        ("a +", "no expression"),
        ("(" * 900, "no expression"),
        ("-" * 900 + "a", "nested|no expression"),
        ("__import__('os').system('true')", "cannot be used"),
        ("[1, 2]", "cannot be used"),
        ("a ** 9 ** 9", "cannot be used"),
        ("exp(a)", "unknown function 'exp'"),
        ("min(a)", "min takes 2 values"),
        ("word + 1", "is the word 'gpipe'"),
        ("word", "is a word"),
        ("a < '70 GBB'", "unknown unit"),
        ("a < 'x'", "not a number with a unit"),
        ("lambda: 1", "cannot be used"),
    ],
)
def test_bad_expressions_are_one_sentence(text: str, says: str) -> None:
    with pytest.raises(ts.InputError, match=says):
        Expression(text, "rule").value(lambda name, _: NAMES[name])


def with_(**changes: Any) -> dict[str, Any]:
    table = copy.deepcopy(BASE)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(table.get(key), dict):
            table[key] |= value
        else:
            table[key] = value
    return table


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ({"from": 1, "to": 64, "factor": 2}, [1, 2, 4, 8, 16, 32, 64]),
        ({"from": 2, "to": 9, "step": 3}, [2, 5, 8]),
        ({"from": 1, "to": 4, "steps": 4}, [1, 2, 3, 4]),
    ],
)
def test_ranges(values: dict[str, Any], numbers: list[float]) -> None:
    assert ts.study(with_(axes={"tensor": values})).space.axes[1].values == (tuple(numbers),)


def test_range_with_units() -> None:
    values = {"from": "100 GB/s", "to": "0.3 TB/s", "step": "100 GB/s"}
    assert ts.study(with_(axes={"network.nvlink.bandwidth": values})).space.axes[1].values == ((1e11, 2e11, 3e11),)


def test_order_of_axes_and_columns() -> None:
    """Cells stand outside, then the cluster, capacities, the strategy; columns keep the order of the file."""
    table = with_(
        axes={"device.memory.hbm.capacity": ["40 GB"], "pp": [1, 2], "schedule": ["1f1b", "gpipe"]},
        keep={"best_per": ["pp"]},
    )
    study = ts.study(table)
    names = ["schedule", "pp", "devices", "device.memory.hbm.capacity", "tensor"]
    assert [axis.name for axis in study.space.axes] == names
    assert study.columns == ("tensor", "devices", "device.memory.hbm.capacity", "pp", "schedule")
    assert not study.every


def test_each_cluster_of_a_choice_brings_its_usual_profile() -> None:
    table = with_(axes={"cluster": ["dgx-a100", "mi300x-8"]})
    del table["cluster"]
    space = ts.study(table).space
    for i, key in enumerate(["dgx-a100", "mi300x-8"]):
        _, cluster, strategy = space.candidate((i, 0, 0))
        assert cluster.key == key
        usual = ts.strategy("global_batch=64", cluster=ts.cluster(key))
        assert strategy.profile.name == usual.profile.name


def test_an_open_tensor_degree_keeps_the_defaults_of_the_notation() -> None:
    space = ts.study(BASE).space
    for i, tensor in enumerate((1, 2, 4, 8)):
        strategy = space.candidate((0, i))[2]
        assert (strategy.tensor, strategy.sequence_parallel) == (tensor, float(tensor > 1))
    assert ts.study(with_(strategy="sp=0")).space.candidate((0, 3))[2].sequence_parallel == 0.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"axis": {}}, "unknown key 'axis'; did you mean 'axes'"),
        ({"axes": {"tensr": [1]}}, "'tensr' is no field; did you mean 'tensor'"),
        ({"axes": {"device.peek": [1e15]}}, "did you mean 'peak'"),
        ({"axes": {"network.nvlnk.size": [8]}}, "did you mean 'nvlink'"),
        ({"axes": {"model.hiden": [8]}}, "did you mean 'hidden'"),
        ({"axes": {"pp": []}}, "list of 1 to 100,000 values"),
        ({"axes": {"pp": 4}}, "list of 1 to 100,000 values"),
        ({"axes": {"pp": ["x"]}}, "'x' is not a plain number"),
        ({"axes": {"pp": [float("nan")]}}, "finite"),
        ({"axes": {"pp": [1, 1]}}, "1 is there twice"),
        ({"axes": {"tp": [1, 2]}}, "strategy.tensor is set by two axes"),
        ({"axes": {"pp": {"from": 1, "to": 8}}}, "one of steps, step or factor"),
        ({"axes": {"pp": {"from": 8, "to": 1, "step": 1}}}, "below"),
        ({"axes": {"pp": {"from": 1, "to": 8, "step": 0}}}, "above 0"),
        ({"axes": {"pp": {"from": 1, "to": 9e8, "step": 1}}}, "at most 100,000"),
        ({"axes": {"pp": {"from": 1, "to": 4, "steps": 3}}}, "not a whole number"),
        ({"axes": {"network.nvlink.bandwidth": ["25 GB"]}}, "is in byte"),
        ({"axes": {"schedule": ["1f1b", "gpip"]}}, "did you mean 'gpipe'"),
        ({"axes": {"precision": ["bf16", "fp8"]}}, "multiplies in fp8, which a100-sxm-80gb does not have"),
        ({"axes": {"seq": [2048, 4096]}}, "position table of .* has 2048 rows"),
        ({"axes": {"cluster": ["dgx-h100"]}}, "cluster is fixed and an axis"),
        ({"seq": 2048, "axes": {"seq": [1024]}}, "seq is fixed and an axis"),
        ({"strategy": "pp=2", "axes": {"pp": [1]}}, "pipeline is fixed and an axis"),
        ({"global_batch": "many"}, "global_batch"),
        ({"linked": {"d": {"pp": [1, 2], "cp": [1]}}}, "pp has 2, cp has 1"),
        ({"linked": {"d": {"label": ["x"]}}}, "columns of equal length"),
        ({"derived": {"network": "tensor"}}, "derived.network: network is not one number"),
        ({"derived": {"strategy.order": "tensor"}}, "strategy.order is not one number"),
        ({"derived": {"micro_batch": "tensr + 1"}}, "unknown name 'tensr'; did you mean 'tensor'"),
        ({"derived": {"micro_batch": "tensor / 16"}}, "micro_batch: 0.0625 is not a whole number"),
        ({"constraints": {"a": "tensor <"}}, "constraints.a: 'tensor <' is no expression"),
        ({"constraints": {"a": "step_time <= 1"}}, "did you mean 'step_time_s'"),
        ({"objectives": {"mfu": "1 + 1"}}, "'mfu' is used twice"),
        ({"objectives": {"a": "b", "b": "a"}}, "nested too deeply"),
        ({"keep": {"rows": "some"}}, "'all' or 'best'"),
        ({"keep": {"best_per": ["tens"]}}, "keep.best_per: no axis 'tens'; did you mean 'tensor'"),
        ({"keep": {"best_per": "tensor"}}, "list of names"),
        ({"keep": {"pareto": ["mfu"]}}, "two or more"),
        ({"keep": {"tops": 3}}, "did you mean 'top'"),
    ],
)
def test_bad_studies_are_one_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ts.InputError, match=says) as fault:
        ts.study(with_(**changes))
    assert "\n" not in str(fault.value)


def test_an_absurd_size_is_refused() -> None:
    span = {"from": 1, "to": 90000, "step": 1}
    with pytest.raises(ts.InputError, match="at most 1e"):
        ts.study(with_(axes={"pp": span, "cp": span, "micro_batch": span}))


def test_a_space_from_python_is_checked_too() -> None:
    cluster = ts.cluster("dgx-a100", devices=64)
    base = ts.strategy("global_batch=64", cluster=cluster)
    model = ts.model("gpt3-175b")
    with pytest.raises(ts.InputError, match="did you mean 'tensor'"):
        ts.Space(model, cluster, base, (ts.Axis.of("tensr", [1, 2]),))
    with pytest.raises(ts.InputError, match="did you mean 'fabric'"):
        ts.Space(model, cluster, base, (ts.Axis.of("network.fabrik.bandwidth", [1e9]),))
    with pytest.raises(ts.InputError, match="needs values"):
        ts.Axis.of("tensor", [])
    with pytest.raises(ts.InputError, match="finite"):
        ts.Axis.of("tensor", [float("inf")])


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("file", ["examples/sweep/llama-70b.toml", "benchmarks/spaces/gpt3-joint.toml"])
def test_studies_that_ship_meet_the_schema(file: str) -> None:
    jsonschema.validate(tomllib.loads((ROOT / file).read_text()), study_schema())
    assert ts.study(ROOT / file).space.size > 1e6


@pytest.mark.parametrize(
    "changes",
    [{"axes": {"pp": []}}, {"keep": {"rows": "some"}}, {"seq": 0}, {"axes": {"pp": {"from": 1, "to": 2}}}, {"a": 1}],
)
def test_the_schema_refuses(changes: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(with_(**changes), study_schema())


def test_schema_names_every_key() -> None:
    from tradespace.explore.studies import KEEP, TOP

    schema = study_schema()
    assert tuple(schema["properties"]) == TOP
    assert tuple(schema["properties"]["keep"]["properties"]) == KEEP


def test_dotted_keys_without_quotes(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'model = "gpt3-175b"\ncluster = "dgx-a100"\nglobal_batch = 64\n[axes]\nnetwork.nvlink.size = [8, 16]\n'
        'network.fabric.bandwidth = {from = "25 GB/s", to = "50 GB/s", factor = 2}\n'
    )
    assert [axis.name for axis in ts.study(path).space.axes] == ["network.nvlink.size", "network.fabric.bandwidth"]
