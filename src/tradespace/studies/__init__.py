"""Named studies: published claims evaluated again in the product's own core, with figures and verdicts."""

from tradespace.studies.table import names, report, reproduce

__all__ = ["names", "report", "reproduce"]
