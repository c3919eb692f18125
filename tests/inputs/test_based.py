"""Model files: those that build on another model, and the ones that the documentation shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tradespace.errors import InputError
from tradespace.inputs import load
from tradespace.workload.count import parameters

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def file(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_documented_files_are_models(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    first, second = (load.model(file(tmp_path, text)) for text in blocks)
    assert [kind.name for kind in first.kinds] == ["dense", "sparse"]
    attention, experts = 4 * 1024**2, 16 * 3 * 1024**2 + 16 * 1024
    ends = 2 * 32000 * 1024 + 1024
    assert parameters(first).total == 8 * (attention + 2048) + 4 * 3 * 1024 * 4096 + 4 * experts + ends
    assert (second.seq, second.name) == (8192.0, "mine")
    assert parameters(second).total == parameters(load.model("deepseek-v3")).total


def test_a_file_beside_another_one(tmp_path: Path) -> None:
    file(tmp_path, 'base = "llama-3.1-8b"\nlayers = 16\n', "half.toml")
    built = load.model(file(tmp_path, 'base = "half.toml"\nfrozen = 1\nadapter_rank = 8\n'))
    assert (built.layers, built.frozen, built.adapter_rank, built.hidden) == (16.0, 1.0, 8.0, 4096.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('base = "lama-3.1-8b"', "no model 'lama-3.1-8b' in the catalog; did you mean 'llama-3.1-8b'?"),
        ('base = "other.toml"', "no such file"),
        ('base = "mine.toml"', "the models build on one another in a circle"),
        ("base = 3", "a catalog key or a path of a model is needed, not 3"),
        ('base = "llama-3.1-8b"\nlayer = 3', "unknown key 'layer'; did you mean 'layers'?"),
        ('base = "llama-3.1-8b"\nlayers = -3', "layers: -3 is below the least possible value"),
        ('base = "mixtral-8x7b"\nffn = 3', "has layers of its own sizes; ffn alone does not change them"),
    ],
)
def test_faults_are_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as fault:
        load.model(file(tmp_path, text))
    assert words in str(fault.value)
    assert "\n" not in str(fault.value)
