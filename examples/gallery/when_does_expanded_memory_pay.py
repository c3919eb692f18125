"""From which bandwidth on does expanded memory pay? COMET's 1T Transformer on its A100 and TPU v4 clusters.

COMET's loop spreads what local memory does not hold over the expansion. The best strategy at each bandwidth is compared
with the best one without any expansion; COMET (v2) says that expansion gives up to 1.4x.
"""

import tradespace as ts
from tradespace.studies.presets import case

for key in ("dgx", "tpu"):
    case_ = case("comet", key, expanded=True)
    found = ts.whatif(case_.model, case_.cluster, case_.strategy)
    name, curve = next((name, curve) for name, curve in found.curves.items() if curve.without)
    bandwidth = next(effect.resource.value for effect in found.effects if effect.resource.name == name)
    gains = [gain for point in curve.points if (gain := curve.worth(point)) is not None]
    start = "never" if curve.pays_from is None else f"from {bandwidth * curve.pays_from / 1e9:.0f} GB/s per device on"
    print(f"{case_.label}: pays {start}, up to {1 + max(gains):.2f}x")
