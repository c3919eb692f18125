"""The command-line application: common options, loading of the three inputs, running with exit codes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from tradespace import __version__
from tradespace.errors import InputError
from tradespace.inputs import load, settings
from tradespace.views.terminal import note

if TYPE_CHECKING:  # views are imported when they are needed
    from tradespace.views.report import Report

FAULT, BAD_INPUT, NO_FIT, INTERRUPTED = 1, 2, 3, 130

Format = Literal["table", "json", "csv", "markdown"]
Set = Annotated[list[str] | None, Parameter(name="--set", help="Change one field: path=value (repeatable).")]
Devices = Annotated[float | None, Parameter(help="Devices of the job (default: one node or pod).")]
Seq = Annotated[float | None, Parameter(help="Sequence length in tokens (default: 4096, or the model's maximum).")]
Out = Annotated[
    Path | None, Parameter(help="Write a report (.html), the figure (.png, .svg) or its data (.json, .csv).")
]
Tokens = Annotated[float | None, Parameter(help="Tokens to train on: adds the whole run.")]
Shown = Annotated[Format, Parameter(name=["--format", "-f"], help="How the result is printed.")]

called: ContextVar[Sequence[str]] = ContextVar("called", default=())
"""The arguments of the command that runs, for reports that say how to make them again."""

app = App(
    name="tradespace",
    version=__version__,
    help="Predict a training step, find the best strategy on a cluster, and see which cluster to build.",
    version_flags=["--version"],
    result_action="return_value",
)


def inputs(
    model: str,
    cluster: str,
    strategy: str | dict[str, Any],
    devices: float | None,
    seq: float | None,
    set_: list[str] | None,
) -> tuple[Any, Any, Any]:
    """Load and check the three inputs, then apply --set."""
    loaded_model = load.model(model, seq)
    loaded_cluster = load.cluster(cluster, devices)
    loaded = load.strategy(strategy, cluster=loaded_cluster)
    return settings.apply(set_ or [], loaded_model, loaded_cluster, loaded)


def amount(value: float, option: str) -> float:
    """A positive, finite number given as an option."""
    if not 0.0 < value < 1e30:
        raise InputError(f"{option}: {value:g}, but a positive number is needed, such as 15e12")
    return value


def save(chart: Any, path: Path) -> None:
    """Write a figure, or its data, to a file."""
    from tradespace.views.figures import save as write

    write(chart, path)


def command() -> str:
    """The command that runs, as one would type it."""
    return shlex.join(["tradespace", *called.get()])


def write_out(path: Path | None, report: Callable[[], Report], figure: Callable[[], Any] | None = None) -> None:
    """Write what --out asks for, if anything: the report where the name ends in .html, else the figure."""
    if path is None:
        return
    from tradespace.views.report import is_report, write

    if is_report(path) or figure is None:
        write(report(), path)
    else:
        save(figure(), path)
    note(f"wrote {path}")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every fault becomes one sentence on stderr and an exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell (>&-): what is printed goes nowhere
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    called.set(list(sys.argv[1:] if arguments is None else arguments))
    try:
        result = app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
        return int(result or 0)
    except InputError as error:
        note(f"error: {error}")
    except CycloptsError as error:
        note("error: " + " ".join(str(error).split()).rstrip(".") + "; tradespace --help lists the commands")
    except (PermissionError, IsADirectoryError, FileNotFoundError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        note(f"error: {error.filename or 'file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        note("interrupted")
        return INTERRUPTED
    except Exception as error:
        note(f"internal fault ({type(error).__name__}: {error}); please report it with the command that you ran")
        if os.environ.get("TRADESPACE_DEBUG"):
            raise
        return FAULT
    return BAD_INPUT
