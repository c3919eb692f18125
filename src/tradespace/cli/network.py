"""What the network of a cluster reaches: bus-bandwidth, fit-curve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tradespace.cli.app import Devices, Out, Set, Shown, app, save
from tradespace.errors import InputError, nearest
from tradespace.inputs import load, settings
from tradespace.views.terminal import emit


def collective_name(text: str) -> str:
    """A collective as the product names it, from that name, with hyphens, or as nccl-tests name it."""
    from tradespace.network.algorithms.crossings import CROSSINGS

    name = {"alltoall": "all_to_all"}.get(text, text.replace("-", "_"))
    if name not in CROSSINGS:
        raise InputError(f"--collective: unknown collective '{text}'{nearest(name, list(CROSSINGS))}")
    return name


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

    loaded = settings.apply_to_cluster(set_ or [], load.cluster(cluster, devices)) if cluster else None
    if compare:
        found = bus_report.comparison(loaded.key if loaded else None)
        emit(format, found, lambda: bus_report.comparison_rows(found), [bus_report.comparison_table(found)])
        return 0
    if loaded is None:
        raise InputError("bus-bandwidth: name a cluster (tradespace list clusters), or give --compare")
    name = collective_name(collective)
    if loaded.devices < 2.0:
        raise InputError(f"--devices: {loaded.devices:g}, but a collective needs at least 2 devices")
    rows = bus_report.document(loaded, name, launch == "one")
    if out is not None:
        from tradespace.evidence.bus_figure import figure

        save(figure((loaded, name)), out)
    emit(format, rows, lambda: bus_report.flat(rows), [bus_report.table(loaded, name, rows)])
    return 0


@app.command
def fit_curve(
    cluster: str,
    *logs: Path,
    dim: Annotated[str, Parameter(help="The network dim that the logs measured (default: the innermost).")] = "",
    collective: Annotated[str | None, Parameter(help="Where the logs do not name it.")] = None,
    ranks: Annotated[float | None, Parameter(help="Where a log does not list its ranks.")] = None,
    format: Literal["toml", "json"] = "toml",
) -> int:
    """The curve of one network dim from your own nccl-tests logs, one log for each number of ranks.

    LOGS must stay inside the dim: one node for the inner one, one device of each node for the one between nodes.
    """
    from tradespace.evidence import curve_fit

    network = {each.name: each for each in load.cluster(cluster).network}
    chosen = dim or next(iter(network))
    if chosen not in network:
        raise InputError(f"--dim: {cluster} has no '{chosen}'{nearest(chosen, list(network))}")
    if not logs:
        raise InputError("fit-curve: name at least one log of nccl-tests")
    name = collective_name(collective) if collective else None
    found = curve_fit.curve(network[chosen], [curve_fit.read_log(log, name, ranks) for log in logs])
    if format == "json":
        emit("json", {"schema": 1, **found}, list, [])
    else:
        print(curve_fit.as_toml(found, [log.name for log in logs]))
    return 0
