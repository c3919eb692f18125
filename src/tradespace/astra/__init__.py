"""ASTRA-sim to the nanosecond, and Chakra traces in and out."""

from tradespace.astra.export import write_iteration
from tradespace.astra.faults import AstraWarning
from tradespace.astra.iteration import Collective, Compute, Iteration, Receive, RemoteAccess, Send
from tradespace.astra.network_file import read_network
from tradespace.astra.run import collectives, replay, replay_iteration
from tradespace.astra.system_file import Machine, read_system

__all__ = [
    "AstraWarning",
    "Collective",
    "Compute",
    "Iteration",
    "Machine",
    "Receive",
    "RemoteAccess",
    "Send",
    "collectives",
    "read_network",
    "read_system",
    "replay",
    "replay_iteration",
    "write_iteration",
]
