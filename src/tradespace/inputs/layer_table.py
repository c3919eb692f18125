"""A model as a table of layers: matrix products, memory-bound passes, look-ups and collectives, phase by phase.

The form in which COMET (Kadiyala et al., arXiv 2211.16648) and ASTRA-sim describe a workload; docs/layer-table.md.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.inputs.fields import quantities, quantity, switch
from tradespace.num import Num

KINDS = ("gemm", "pass", "lookup", "checkpoint")
SPLITS = ("none", "batch", "m", "k", "n")
SIZES = ("sample", "device")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
GROUPS = ("tensor", "data", "all")
PHASES = ("forward", "input_grad", "weight_grad")


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One layer of a table. Rows of one `stack` stand together and are run `repeat` times.

    gemm: (m x k)(k x n), `batch` of them; the input gradient is (m x n)(n x k), the weight gradient (k x m)(m x n).
    pass: `values` read and written forward, `values_back` for the input gradient. lookup: m rows of n values are read
    from a table of k rows. checkpoint: `values` that are kept when the stack is recomputed, with the exchange that
    brings them back in `forward`. Exchanges are written "all_reduce tensor": collective, group.
    """

    name: str
    kind: str = "gemm"
    stack: str = "stack"
    repeat: Num = quantity("", "how often the stack is run", default=1.0, low=1.0)
    m: Num = quantity("", "rows of the left operand", default=1.0)
    k: Num = quantity("", "inner length", default=1.0)
    n: Num = quantity("", "columns of the right operand", default=1.0)
    batch: Num = quantity("", "products of this size", default=1.0)
    split: str = "none"
    weights: Num = switch("1: the right operand holds parameters, 0: it is an activation", default=1.0)
    values: Num = quantity("", "values read and written forward (pass), kept (checkpoint)", default=0.0)
    values_back: Num = quantity("", "values read and written for the input gradient (pass)", default=0.0)
    flops: Num = quantity("", "FLOPs of a pass, forward", default=0.0)
    flops_back: Num = quantity("", "FLOPs of a pass, input gradient", default=0.0)
    saved: Num = quantity("", "values kept for backward; -1 = the left operand of a gemm", default=-1.0, low=-1.0)
    forward: str = ""
    forward_values: Num = quantity("", "values of its full tensor", default=0.0)
    forward_awaited: str = ""
    input_grad: str = ""
    input_grad_values: Num = quantity("", "values of its full tensor", default=0.0)
    input_grad_awaited: str = ""
    weight_grad: str = ""
    weight_grad_values: Num = quantity("", "values of its full tensor; 0 = the weights on a device", default=0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerTable:
    """Rows in the order of the forward pass.

    `sizes`: "sample": sizes are those of one sample (sequence) and of whole layers: samples of a replica multiply the
    rows of weight products, the batch of activation products, and values; the tensor degree divides what `split`
    names. "device": sizes are those of one device and one step, whatever the strategy.
    """

    sizes: str = "sample"
    rows: tuple[Row, ...] = field(default=())


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV file whose header names fields of `Row`; empty cells take the default."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None
    except OSError as fault:
        raise InputError(f"{path}: {fault.strerror or fault}") from None
    reader = csv.DictReader(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    rows = []
    for number, row in enumerate(reader, 1):
        if None in row:
            raise InputError(f"{path}: row {number} has more cells than the header has names")
        rows.append({key.strip(): _cell(key.strip(), text) for key, text in row.items() if text and text.strip()})
    return rows


def _cell(column: str, text: str) -> str | float:
    """A number where the column holds numbers and the cell is one; else the text, which `build` judges."""
    if column not in quantities(Row):
        return text.strip()
    try:
        return float(text)
    except ValueError:
        return text.strip()


def check(table: LayerTable, where: str) -> None:
    """Words of a table: kinds, splits, collectives, groups, awaited names; stacks in one piece."""
    if table.sizes not in SIZES:
        raise InputError(f"{where}.sizes: unknown word '{table.sizes}'{nearest(table.sizes, SIZES)}")
    if not table.rows:
        raise InputError(f"{where}: a layer table needs at least one row")
    seen: dict[str, Row] = {}
    for i, row in enumerate(table.rows):
        place = f"{where}.rows[{row.name}]"
        for name, word, known in (("kind", row.kind, KINDS), ("split", row.split, SPLITS)):
            if word not in known:
                raise InputError(f"{place}.{name}: unknown word '{word}'{nearest(word, known)}")
        for phase in PHASES:
            _check_exchange(getattr(row, phase), f"{place}.{phase}")
        first = seen.setdefault(row.stack, row)
        if first.repeat != row.repeat:
            raise InputError(f"{place}.repeat: {row.repeat:g}, but its stack '{row.stack}' has {first.repeat:g}")
        if first is not row and table.rows[i - 1].stack != row.stack:
            raise InputError(f"{place}.stack: rows of stack '{row.stack}' must stand together")
        _check_awaited(table, row, place)


def _check_exchange(text: str, place: str) -> None:
    if not text:
        return
    words = text.split()
    if len(words) != 2:
        raise InputError(f"{place}: '{text}' is not a collective and a group, such as 'all_reduce tensor'")
    for word, known in zip(words, (COLLECTIVES, GROUPS), strict=True):
        if word not in known:
            raise InputError(f"{place}: unknown word '{word}'{nearest(word, known)}")


def _check_awaited(table: LayerTable, row: Row, place: str) -> None:
    names = [other.name for other in table.rows if other.stack == row.stack]
    for item in fields(Row):
        if item.name.endswith("_awaited") and getattr(row, item.name) not in ("", *names):
            word = getattr(row, item.name)
            raise InputError(f"{place}.{item.name}: no row '{word}' in this stack{nearest(word, names)}")


def table_of(source: Mapping[str, Any], where: str, folder: Path) -> dict[str, Any]:
    """The `table` of a model file, its rows read where they are named by a CSV file beside it."""
    table = dict(source)
    rows = table.get("rows")
    if isinstance(rows, str):
        table["rows"] = read_csv(folder / rows)
    elif rows is None:
        raise InputError(f"{where}.table: rows are missing: [[table.rows]] tables, or the name of a CSV file")
    return table
