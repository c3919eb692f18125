"""--set: any field by its dotted name, copies only, known wrong figures refused."""

import numpy as np
import pytest

from tradespace.errors import InputError
from tradespace.inputs import load
from tradespace.inputs.settings import apply, replace_path

MODEL = {
    "name": "m", "layers": 2, "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "ffn": 256, "vocab": 100,
}  # fmt: skip


def _set(*settings, key="dgx-h100"):
    cluster = load.cluster(key)
    strategy = load.strategy("tp=2,global_batch=8", cluster=cluster)
    return apply(settings, load.model(MODEL), cluster, strategy)


def test_fields_everywhere():
    model, cluster, strategy = _set(
        "model.layers=10",
        "device.memory.hbm.capacity=141GB",
        "device.peak = 1 PFLOP/s",
        "device.gemm.bf16.fraction=0.5",
        "device.attention.fa3.half_length=100",
        "network.nvlink.bandwidth=600 GB/s",
        "network.fabric.latency=2 us",
        "network.fabric.in_network=true",
        "cluster.devices=64",
        "strategy.tensor=4",
        "strategy.recompute=full",
        "strategy.profile=nanotron",
        "strategy.profile.hide_tensor=0.25",
        "strategy.overlap.gradient=0",
    )
    assert model.layers == 10.0
    assert (cluster.local.capacity, cluster.device.peak, cluster.devices) == (1.41e11, 1e15, 64.0)
    assert cluster.device.gemm["bf16"].fraction == 0.5
    assert cluster.device.gemm["fp8"].fraction == load.device("h100-sxm").gemm["fp8"].fraction
    assert cluster.device.attention["fa3"].half_length == 100.0
    assert [dim.bandwidth for dim in cluster.network] == [6e11, 5e10]
    assert (cluster.network[1].latency, cluster.network[1].in_network) == (2e-6, True)
    assert (strategy.tensor, strategy.recompute, strategy.profile.name) == (4.0, 2.0, "nanotron")
    assert (strategy.profile.hide_tensor, strategy.overlap.gradient, strategy.overlap.tensor) == (0.25, 0.0, 1.0)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("device.peak", "is not path=value"),
        ("device=h100-sxm", "--set device: name one field of it"),
        ("devise.peak=1", "unknown start 'devise'; did you mean 'device'?"),
        ("device.peek=1e15", "device.peek: no 'peek' here; did you mean 'peak'?"),
        ("device.memory.hbn.capacity=1e9", "no 'hbn' here; did you mean 'hbm'?"),
        ("device.memory.hbm=1e9", "holds several fields"),
        ("device.memory=1e9", "holds several values; name one of them, such as device.memory.hbm"),
        ("device.gemm.int8.fraction=1", "no 'int8' here"),
        ("network.nvlnk.bandwidth=1e9", "no 'nvlnk' here; did you mean 'nvlink'?"),
        ("network.nvlink.bandwidth=450 GB", "is in byte, but a bandwidth such as '450 GB/s' is needed"),
        ("network.nvlink.curves.all_reduce.latency=1", "holds several values"),
        ("model.layers=2.5", "model.layers: '2.5' is not a whole number"),
        ("model.layers.x=2", "no 'x' here"),
        ("strategy.recompute=some", "unknown value 'some'"),
        ("strategy.schedule=zb-v", "not modelled yet"),
        ("strategy.profile.hide_tensr=1", "did you mean 'hide_tensor'?"),
        ("strategy.tp=2", "no 'tp' here"),
    ],
)
def test_faults(setting, words):
    with pytest.raises(InputError) as fault:
        _set(setting)
    assert words in str(fault.value)
    assert "\n" not in str(fault.value)


def test_known_wrong_figures_are_refused_for_that_part_only():
    with pytest.raises(
        InputError, match=r"network.nvlink.bandwidth: 900 GB/s of the h100-sxm is the sum of both"
    ) as fault:
        _set("network.nvlink.bandwidth=900GB/s")
    assert "450 GB/s" in str(fault.value)
    with pytest.raises(
        InputError, match=r"device.peak: 1979 TFLOP/s of the h100-sxm is with 2:4 sparsity.*989.4 TFLOP/s"
    ):
        _set("device.peak=1975 TFLOP/s")
    with pytest.raises(InputError, match="600 GB/s of the a100-sxm-80gb"):
        _set("network.nvlink.bandwidth=600GB/s", key="dgx-a100")
    assert _set("network.nvlink.bandwidth=900GB/s", key="dgx-a100")[1].network[0].bandwidth == 9e11
    assert _set("network.nvlink.bandwidth=950GB/s")[1].network[0].bandwidth == 9.5e11
    insisted = _set("device.key=my-h100-sxm", "network.nvlink.bandwidth=900GB/s")[1]
    assert insisted.network[0].bandwidth == 9e11


def test_replace_path_takes_arrays_and_copies():
    before = load.cluster("dgx-a100")
    axis = np.array([[1e9], [2e9]])
    after = replace_path(before, "network.fabric.bandwidth", axis)
    assert after.network[1].bandwidth is axis
    assert before.network[1].bandwidth == 25e9
    assert after.network[0] is before.network[0]
    assert after.device is before.device
    curve = replace_path(before, "network.nvlink.curves.all_reduce.fraction", (1.0, 1.0, 1.0))
    assert curve.network[0].curves["all_reduce"].fraction == (1.0, 1.0, 1.0)
    with pytest.raises(InputError, match="no 'fabrik' here; did you mean 'fabric'"):
        replace_path(before, "network.fabrik.bandwidth", axis)
