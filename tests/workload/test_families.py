"""Families beyond the dense decoder: FLOPs per token, saved activations and placement against published values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tradespace.inputs.load import model, profile
from tradespace.workload.count import flops_per_token, numbers, parameters
from tradespace.workload.families import blocks_of
from tradespace.workload.operator import Operator
from tradespace.workload.partition import by_kind, partition

GIB = 2.0**30


@pytest.mark.parametrize(
    ("key", "gflop"),
    [
        ("qwen3-30b-a3b", 23.0830),
        ("qwen3-235b-a22b", 148.335),
        ("deepseek-v3", 250.456),
        ("gpt-oss-120b", 32.7205),
    ],
)
def test_flops_per_token_to_six_digits(key: str, gflop: float) -> None:
    """6 N_active + 3 heads (d_qk + d_v) s_l at 4,096 tokens; DeepSeek-V3 without multi-token prediction, gpt-oss with
    windows of 128 on every second layer. NVIDIA's published columns agree within 0.6 %."""
    assert float(flops_per_token(model(key, seq=4096))) / 1e9 == pytest.approx(gflop, rel=2.5e-6)


@pytest.mark.parametrize(
    ("key", "total"),
    [
        ("llama-4-scout", 108_641_793_536),
        ("llama-4-maverick", 401_583_781_376),
        ("deepseek-v2", 235_741_434_880),
        ("deepseek-v2-lite", 15_706_484_224),
        ("kimi-k2", 1_026_408_232_448 - 60 * 384),
    ],
)
def test_totals_of_public_checkpoints(key: str, total: int) -> None:
    """Sizes of the published safetensors files; Kimi K2's hold 60 x 384 routing corrections, which are buffers."""
    assert parameters(model(key)).total == total


def test_parts_sum_to_the_total() -> None:
    for key in ("deepseek-v3", "nemotron-3-nano-30b-a3b", "gemma-4-26b-a4b", "t5-11b", "bert-large", "jamba-v0.1"):
        found = parameters(model(key))
        assert sum(found.parts.values()) == found.total


def layer(key: str, kind: str, strategy: object) -> dict[str, Operator]:
    block = blocks_of(model(key, seq=4096), strategy)[kind]  # type: ignore[arg-type]
    return {op.name: op for op in block.operators}


def test_saved_activations_of_deepseek_v3(strategy) -> None:
    """deepseek-ai/profile-data issue 18, seq 4096: 0.508 GiB per MLA block, 0.598 GiB per MoE MLP with fp8 inputs of
    GEMMs (1 byte) and 16-bit queries, keys, values, gate and up."""
    ops = layer("deepseek-v3", "moe", strategy(profile=profile("megatron-core")))
    latents = ops["q_down"].saved + ops["kv_down"].saved - 4096 * 7168 * 2
    attention = ops["q_up"].saved + ops["kv_up"].saved + latents / 2
    assert attention / GIB == pytest.approx(0.508, abs=5e-4)
    rows = 8 * 4096
    routed = (ops["experts_in"].saved - rows * 4096 * 2) / 2 + rows * 4096 * 2 + ops["experts_out"].saved / 2
    shared = 4096 * 7168 + ops["shared_in"].saved + ops["shared_out"].saved / 2
    assert (routed + shared) / GIB == pytest.approx(0.598, abs=5e-4)


@pytest.mark.parametrize("expert", [1.0, 2.0, 8.0])
def test_routed_activations_do_not_depend_on_the_expert_degree(strategy, expert: float) -> None:
    """NVIDIA/Megatron-LM issue 1784: top_k s b moe_ffn / TP values whatever the expert degree."""
    chosen = strategy(profile=profile("megatron-core"), tensor=2.0, sequence_parallel=1.0, expert=expert)
    down = layer("mixtral-8x7b", "layer", chosen)["experts_out"]
    assert down.saved == 2.0 * 4096 * 14336 / 2 * 2


def test_work_of_experts_is_conserved(strategy) -> None:
    """Every folding multiplies the same FLOPs and holds 1 / (expert x expert_tensor) of the routed weights."""
    plain = layer("qwen3-30b-a3b", "moe", strategy(profile=profile("megatron-core")))
    for expert, inside in ((8.0, 1.0), (4.0, 2.0), (16.0, 1.0)):
        chosen = strategy(profile=profile("megatron-core"), expert=expert, expert_tensor=inside)
        folded = layer("qwen3-30b-a3b", "moe", chosen)
        for name in ("experts_in", "experts_out"):
            assert folded[name].weights == plain[name].weights / (expert * inside)
            assert folded[name].forward.shape.flops == pytest.approx(plain[name].forward.shape.flops)


def test_imbalance_makes_the_busiest_rank_work_more(strategy) -> None:
    even, skewed = (
        layer("qwen3-30b-a3b", "moe", strategy(profile=profile("megatron-core"), expert=8.0, imbalance=factor))
        for factor in (1.0, 1.5)
    )
    for name in ("experts_in", "experts_out"):
        assert skewed[name].forward.shape.flops == pytest.approx(1.5 * even[name].forward.shape.flops)
        assert skewed[name].saved == pytest.approx(1.5 * even[name].saved)
    assert skewed["dispatch"].forward.exchanges[0].volume == 1.5 * even["dispatch"].forward.exchanges[0].volume


@pytest.mark.parametrize("key", ["deepseek-v3", "jamba-v0.1", "nemotron-h-56b", "llama-nemotron-super-49b", "t5-11b"])
@pytest.mark.parametrize("stages", [1.0, 2.0, 3.0, 8.0, 24.0])
def test_every_layer_of_every_kind_is_placed_once(key: str, stages: float) -> None:
    built = model(key)
    classes = by_kind(partition(built.layers, stages, 0.0), built)
    for kind, number in numbers(built).items():
        assert sum(float(c.count) * float(c.numbers[kind]) for c in classes) == pytest.approx(float(number), rel=1e-12)
    for one in classes:
        assert sum(map(float, one.numbers.values())) == pytest.approx(float(one.layers) * min(float(one.count), 1.0))


def test_dense_first_layers_stay_on_the_first_stage() -> None:
    built = model("deepseek-v3")
    first, *others = by_kind(partition(61.0, 16.0, 0.0), built)
    assert first.numbers["dense"] == 3.0
    assert all(stage.numbers["dense"] == 0.0 for stage in others)


def test_fused_projections_share_an_adapter() -> None:
    """MLPerf's Llama 2 70B, rank 16 on the fused q, k, v and on the output: 16 (h + out) each, in 80 layers."""
    adapted = replace(model("llama-2-70b"), frozen=1.0, adapter_rank=16.0, adapter_fused=1.0, adapter_mlp=0.0)
    found = parameters(adapted).parts
    adapters = sum(float(number) for name, number in found.items() if "adapter" in name)
    assert adapters == 80 * 16 * ((8192 + 10240) + (8192 + 8192))
    assert not any("adapter" in name and "mlp" in name for name in found)


def test_frozen_weights_save_no_inputs(strategy) -> None:
    """Without a weight gradient a GEMM keeps its input only for an adapter: 2 (1 + 3.5) bytes x h per token go."""
    plain, bare = model("llama-3.1-8b", seq=8192), replace(model("llama-3.1-8b", seq=8192), frozen=1.0)
    chosen = strategy(profile=profile("megatron-core"))
    sizes = [
        sum(float(op.saved) for op in blocks_of(one, chosen)["layer"].operators)
        for one in (plain, bare, replace(bare, adapter_rank=16.0))
    ]
    tokens = 8192 * 4096
    assert sizes[0] - sizes[1] == pytest.approx(2 * tokens * (1 + 1 + 3.5))
    assert sizes[2] - sizes[0] == pytest.approx(2 * 8192 * 16 * 7)


def test_frozen_weights_cost_four_flops_each() -> None:
    """LoRA: 4 N + 6 N_adapter (Hu et al. 2021). PEFT prints for rank 16 on all linear layers of Llama 3.1 8B
    `trainable params: 41,943,040 || all params: 8,072,204,288`."""
    plain = model("llama-3.1-8b", seq=8192)
    adapted = replace(plain, frozen=1.0, adapter_rank=16.0)
    adapters = 41_943_040
    assert parameters(adapted).total == 8_072_204_288
    multiplied = float(parameters(plain).active_excl_input_embedding)
    expected = float(flops_per_token(plain)) - 2 * multiplied + 6 * adapters
    assert float(flops_per_token(adapted)) == pytest.approx(expected, rel=1e-12)
