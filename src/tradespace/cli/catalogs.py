"""What the catalog holds and what input files look like: list, show, schema."""

from __future__ import annotations

from tradespace.cli.app import Shown, app
from tradespace.views.terminal import emit


@app.command(name="list")
def list_(kind: str = "all", *, format: Shown = "table") -> int:
    """What the catalog holds: models, devices, clusters, profiles, precisions, optimizers, sources."""
    from tradespace.views import catalog

    emit(format, catalog.listing(kind), lambda: catalog.rows(kind), [catalog.listing_table(kind)])
    return 0


@app.command
def show(name: str, *, format: Shown = "table") -> int:
    """One catalog entry with its numbers, units, source and confidence."""
    from tradespace.views import catalog

    document = catalog.entry(name)
    emit(format, document, lambda: catalog.entry_rows(document), [catalog.entry_table(document)])
    return 0


@app.command
def schema(kind: str) -> int:
    """JSON Schema of an input file: model, device, cluster, strategy or study."""
    from tradespace.explore.study_schema import study_schema
    from tradespace.inputs.schemas import file_schema

    emit("json", study_schema() if kind == "study" else file_schema(kind), list, [])
    return 0
