"""The command line: verbs that load, call and show. Each file registers the verbs of one subject."""

from __future__ import annotations

import sys

from tradespace.cli import astra, catalogs, evidence, export, money, network, reports, steps, studies, sweeps
from tradespace.cli.app import app, run

__all__ = [
    "app",
    "astra",
    "catalogs",
    "evidence",
    "export",
    "main",
    "money",
    "network",
    "reports",
    "run",
    "steps",
    "studies",
    "sweeps",
]


def main() -> None:
    """Entry point of the `tradespace` command."""
    sys.exit(run())
