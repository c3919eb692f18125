"""What may a larger NVLink domain cost? DeepSeek-V3 and a dense model on 256 B200s, domains of 8 to 64 devices.

Each point has its own best strategy. A device may cost so much more until a token costs the same.
"""

import tradespace as ts

for key in ("deepseek-v3", "llama-3.1-70b"):
    cluster = ts.cluster("dgx-b200", devices=256)
    base = ts.strategy("global_batch=4096,precision=fp8", cluster=cluster)
    found = ts.whatif(ts.model(key, seq=4096), cluster, base)
    for point in found.curves["network.nvlink.size"].points:
        if point.step is not None:
            gain = found.base.step_time / point.step.step_time - 1.0
            print(
                f"{key}: domain of {8 * point.factor:3.0f}: {point.step.step_time:6.2f} s, worth {gain:+.0%} per device"
            )
