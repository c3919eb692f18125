"""Reading one public config.json: sizes and switches by their public names; each fault is one InputError sentence."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.inputs.fields import Quantity, quantities
from tradespace.inputs.model import Model
from tradespace.inputs.units import number

_BOUNDS = quantities(Model)
_SIZE = Quantity("", "a size", 1.0, 1e9, True)
_SIZE_OR_NONE = Quantity("", "a size, 0 for none", 0.0, 1e9, True)
_WORDS: dict[type, str] = {str: "text", bool: "true or false", list: "a list", dict: "a table"}


@dataclass(frozen=True)
class Names:
    """How a family of configurations spells its sizes; the first spelling is the one that error messages name."""

    layers: tuple[str, ...] = ("num_hidden_layers",)
    hidden: tuple[str, ...] = ("hidden_size",)
    heads: tuple[str, ...] = ("num_attention_heads",)
    ffn: tuple[str, ...] = ("intermediate_size",)
    positions: tuple[str, ...] = ("max_position_embeddings",)


@dataclass(frozen=True, eq=False)
class Config:
    """A configuration and its place (file or key) for error messages; null counts as not stated."""

    table: Mapping[str, object]
    where: str
    outer: Mapping[str, object] | None = None  # the whole file, where `table` is its text part

    @property
    def nested(self) -> bool:
        """Whether `table` is a part of a larger file."""
        return self.outer is not None and self.outer is not self.table

    def states(self, name: str) -> bool:
        """Whether the configuration has the key at all, be it null."""
        return name in self.table

    def size(self, field: str, names: tuple[str, ...]) -> float:
        """A required size within the bounds of the Model's field, else at least 1.

        >>> Config({"n_layer": 12}, "config.json").size("layers", ("n_layer", "num_hidden_layers"))
        12.0
        """
        found = self._stated(names, _BOUNDS.get(field, _SIZE))
        if found is None:
            raise InputError(f"{self.where}: missing '{names[0]}' (sizes have no default){self._misspelt(names)}")
        return found

    def optional(self, field: str, names: tuple[str, ...], default: float) -> float:
        """A size that the public class derives or presets where the configuration is silent."""
        found = self._stated(names, _BOUNDS.get(field, _SIZE_OR_NONE))
        return default if found is None else found

    def entries(self, name: str, length: float, allowed: Collection[object]) -> list[Any] | None:
        """A list with one of the `allowed` entries per layer; None where not stated.

        >>> Config({"moe_layer_freq": [0, 1]}, "config.json").entries("moe_layer_freq", 2.0, (0, 1))
        [0, 1]
        """
        value = self.table.get(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) != length:
            raise InputError(f"{self.where}: {name} must be a list with one entry for each of the {length:g} layers")
        for entry in value:
            if not isinstance(entry, (str, int)) or entry not in allowed:
                hint = nearest(entry[:60], [str(a) for a in allowed]) if isinstance(entry, str) else ""
                raise InputError(f"{self.where}: {name} has the unknown entry {entry!r:.40}{hint}")
        return list(value)

    def part(self, name: str) -> Config | None:
        """A nested table of the file (`vision_config`), None where there is none."""
        inner = (self.outer or self.table).get(name)
        if inner is None:
            return None
        if not isinstance(inner, Mapping):
            raise InputError(f"{self.where}: {name} must be a table of fields, not {_said(inner)}")
        return Config(inner, f"{self.where.partition(': ')[0]}: {name}")

    def architecture(self) -> str:
        """The class that the file names first under `architectures`, "" where it names none."""
        names = (self.outer or self.table).get("architectures")
        first = names[0] if isinstance(names, (list, tuple)) and names else ""
        return first if isinstance(first, str) else ""

    def switch(self, name: str, default: bool) -> float:
        """1 for true, 0 for false, the public class's default where not stated.

        >>> Config({"attention_bias": True}, "config.json").switch("attention_bias", False)
        1.0
        """
        value = self.table.get(name)
        if value is None:
            return float(default)
        if not isinstance(value, bool):
            raise InputError(f"{self.where}: {name} must be true or false, not {_said(value)}")
        return float(value)

    def refuse(self, what: str) -> InputError:
        """The error for a variant of a family that is not modelled yet."""
        return InputError(f"{self.where}: {what} not modelled yet")

    def _stated(self, names: tuple[str, ...], bounds: Quantity) -> float | None:
        found = {name: self._number(name, bounds) for name in names if self.table.get(name) is not None}
        if len(set(found.values())) > 1:
            both = " but ".join(f"{name} = {value:g}" for name, value in found.items())
            raise InputError(f"{self.where}: {both}, two names of one size")
        return next(iter(found.values()), None)

    def _number(self, name: str, bounds: Quantity) -> float:
        value = self.table[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{self.where}: {name} must be a whole number, not {_said(value)}")
        return number(value, bounds, f"{self.where}: {name}")

    def _misspelt(self, names: tuple[str, ...]) -> str:
        keys = [str(key) for key in self.table]
        close = [near for name in names for near in difflib.get_close_matches(name, keys, n=1, cutoff=0.8)]
        return f"; is '{close[0]}' a misspelling of it?" if close and close[0] not in names else ""


def _said(value: object) -> str:
    kind = _WORDS.get(type(value), type(value).__name__)
    return f"{value!r}" if isinstance(value, (bool, int, float)) else f"{kind}: {value!r:.40}"


Fields = dict[str, Any]
Family = Callable[[Config], Fields]
PARALLEL = "attention and MLP read the same input in this family; they are timed one after the other"


def base_fields(config: Config, names: Names, tied: bool) -> Fields:
    """The sizes that every family states: layers, width, heads, vocabulary; one width of MHA heads."""
    hidden, heads = config.size("hidden", names.hidden), config.size("heads", names.heads)
    return {
        "layers": config.size("layers", names.layers),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": hidden / heads,
        "vocab": config.size("vocab", ("vocab_size",)),
        "tied": config.switch("tie_word_embeddings", tied),
        "max_seq": config.optional("max_seq", names.positions, 0.0),
    }


def attention_bias(config: Config, default: bool = False) -> Fields:
    """Biases on the query, key, value and output projections under one switch."""
    bias = config.switch("attention_bias", default)
    return {"qkv_bias": bias, "out_bias": bias}
