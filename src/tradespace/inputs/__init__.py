"""What the user says: a model, a cluster, a strategy, each a frozen dataclass of numbers with units."""
