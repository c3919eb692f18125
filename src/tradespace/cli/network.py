"""What the network of a cluster reaches: bus-bandwidth."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from tradespace.cli.app import Devices, Out, Set, Shown, app, save
from tradespace.errors import InputError, nearest
from tradespace.inputs import load, settings
from tradespace.views.terminal import emit


@app.command
def bus_bandwidth(
    cluster: Annotated[str, Parameter(help="Catalog key or TOML file; may be left out with --compare.")] = "",
    *,
    devices: Devices = None,
    collective: Annotated[str, Parameter(help="all_reduce, all_gather, reduce_scatter or all_to_all.")] = "all_reduce",
    launch: Annotated[
        Literal["one", "each"],
        Parameter(help="one: a host thread drives all devices of a node (nccl-tests -g); each: one thread per device."),
    ] = "one",
    compare: Annotated[
        bool, Parameter(negative="", help="All published rows beside predictions, by system, worst first.")
    ] = False,
    set_: Set = None,
    out: Out = None,
    format: Shown = "table",
) -> int:
    """The nccl-tests table of a cluster (8 B to 16 GiB), beside published measurements where there are some."""
    from tradespace.evidence import bus_report
    from tradespace.network.algorithms.crossings import CROSSINGS

    loaded = settings.apply_to_cluster(set_ or [], load.cluster(cluster, devices)) if cluster else None
    if compare:
        found = bus_report.comparison(loaded.key if loaded else None)
        emit(format, found, lambda: bus_report.comparison_rows(found), [bus_report.comparison_table(found)])
        return 0
    if loaded is None:
        raise InputError("bus-bandwidth: name a cluster (tradespace list clusters), or give --compare")
    name = {"alltoall": "all_to_all"}.get(collective, collective.replace("-", "_"))
    if name not in CROSSINGS:
        raise InputError(f"--collective: unknown collective '{collective}'{nearest(name, list(CROSSINGS))}")
    if loaded.devices < 2.0:
        raise InputError(f"--devices: {loaded.devices:g}, but a collective needs at least 2 devices")
    rows = bus_report.document(loaded, name, launch == "one")
    if out is not None:
        from tradespace.evidence.bus_figure import figure

        save(figure((loaded, name)), out)
    emit(format, rows, lambda: bus_report.flat(rows), [bus_report.table(loaded, name, rows)])
    return 0
