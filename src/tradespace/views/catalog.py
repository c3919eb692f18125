"""What the catalog holds, as documents and tables: every number with its source and confidence."""

from __future__ import annotations

from typing import Any

from tradespace.errors import InputError, nearest
from tradespace.inputs.files import catalog_entry, entries

KINDS = ("models", "devices", "clusters", "curves", "profiles", "precisions", "optimizers", "economics", "studies")


def listing(kind: str = "all") -> dict[str, Any]:
    """Names by kind of entry; `sources` lists every source with the entries that name it.

    >>> "h100-sxm" in listing("devices")["devices"]
    True
    """
    if kind == "sources":
        return {"schema": 1, "sources": sources()}
    if kind not in ("all", *KINDS):
        raise InputError(f"list: unknown kind '{kind}'{nearest(kind, ['all', 'sources', *KINDS])}")
    return {"schema": 1, **{name: entries(name) for name in KINDS if kind in ("all", name)}}


def sources() -> dict[str, list[str]]:
    """Every source text of the catalog with the entries that rest on it."""
    found: dict[str, list[str]] = {}
    for kind in KINDS:
        for key in entries(kind):
            for text in _texts(catalog_entry(kind, key), "source"):
                found.setdefault(text, []).append(f"{kind}/{key}")
    return found


def _texts(node: Any, name: str) -> list[str]:
    """All texts under a key, nested tables included."""
    if isinstance(node, dict):
        own = [node[name]] if isinstance(node.get(name), str) else []
        return own + [text for value in node.values() for text in _texts(value, name)]
    if isinstance(node, list):
        return [text for value in node for text in _texts(value, name)]
    return []


def entry(name: str) -> dict[str, Any]:
    """One entry as it stands in the catalog; `kind/name` where a name is used by several kinds.

    >>> entry("h100-sxm")["kind"]
    'devices'
    """
    kind, _, key = name.rpartition("/")
    if kind and kind not in KINDS:
        raise InputError(f"show: unknown kind '{kind}'{nearest(kind, KINDS)}")
    homes = [home for home in KINDS if kind in ("", home) and key in entries(home)]
    if not homes:
        known = [known for home in KINDS if kind in ("", home) for known in entries(home)]
        raise InputError(f"show: no entry '{name}'{nearest(key, known)}")
    return {"schema": 1, "kind": homes[0], "key": key, **catalog_entry(homes[0], key)}


def flat(node: Any, path: str = "") -> list[tuple[str, str]]:
    """Dotted names and values of a nested entry.

    >>> flat({"a": {"b": 1}})
    [('a.b', '1')]
    """
    if isinstance(node, dict):
        return [pair for key, value in node.items() for pair in flat(value, f"{path}.{key}" if path else key)]
    if isinstance(node, list) and any(isinstance(item, dict) for item in node):
        named = [(item.get("name", str(i)), item) for i, item in enumerate(node)]
        return [pair for key, value in named for pair in flat(value, f"{path}.{key}")]
    return [(path, ", ".join(map(str, node)) if isinstance(node, list) else str(node))]


def rows(kind: str) -> list[dict[str, Any]]:
    """One row per name."""
    document = listing(kind)
    return [{"kind": group, "name": name} for group, names in document.items() if group != "schema" for name in names]


def listing_table(kind: str) -> Any:
    """A table of names by kind."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=True)
    table.add_column("kind", style="bold")
    table.add_column("names (tradespace show NAME)")
    for group, names in listing(kind).items():
        if group != "schema":
            table.add_row(group, ("\n" if kind == "sources" else ", ").join(names))
    return table


def entry_rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Field and value of each number of an entry."""
    return [{"field": field, "value": value} for field, value in flat(document)]


def entry_table(document: dict[str, Any]) -> Any:
    """A table of one entry."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=f"{document['kind']}: {document['key']}", title_justify="left")
    table.add_column("field", style="bold")
    table.add_column("value")
    for field, value in flat({k: v for k, v in document.items() if k not in ("schema", "kind", "key")}):
        table.add_row(field, value)
    return table
