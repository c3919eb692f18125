"""Results as documents, tables and figures."""
