"""How many devices do I need? Qwen3 235B-A22B on 10^13 tokens in 60 days, per type of device."""

import tradespace as ts

model = ts.model("qwen3-235b-a22b", seq=4096)
types = [ts.cluster(key) for key in ("dgx-h100", "dgx-b200", "gb200-nvl72")]
for sized in ts.size(model, 10e12, ts.Goal(seconds=60 * 86400), types):
    step, run = sized.step, sized.run
    if step is None or run is None:
        print(f"{sized.cluster.device.key}: {sized.reason}")
        continue
    print(
        f"{sized.cluster.device.key}: {step.cluster.devices:,.0f} devices, {run.seconds / 86400:.0f} days, "
        f"{run.usd / 1e6:.1f} M USD, {run.joule / 3.6e9:,.0f} MWh"
    )
