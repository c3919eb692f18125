"""What do collectives reach? Published nccl-tests rows over the predicted curve of nine systems and collectives."""

import tradespace as ts
from tradespace.evidence.bus_figure import figure
from tradespace.evidence.bus_report import comparison
from tradespace.views.figures import save

panels = [
    ("dgx-a100", 8, "all_reduce"),
    ("dgx-h100", 8, "all_reduce"),
    ("dgx-b200", 8, "all_reduce"),
    ("mi300x-8", 8, "all_reduce"),
    ("gb200-nvl72", 4, "all_reduce"),
    ("gcp-a3-megagpu-8g", 16, "all_reduce"),
    ("dgx-h100", 8, "all_gather"),
    ("dgx-h200", 8, "reduce_scatter"),
    ("dgx-b200", 8, "all_to_all"),
]
save(figure(*((ts.cluster(key, devices=devices), collective) for key, devices, collective in panels)), "networks.png")
for name, part in comparison()["summary"].items():
    print(f"{name}: {part['n']} rows, median error {100 * part['median_abs_error']:.1f} %")
