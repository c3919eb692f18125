"""How often should I checkpoint? Goodput over the interval for Llama 3.1 405B on 1,024 to 65,536 H100s."""

import tradespace as ts
from tradespace.cost.goodput import goodput

model = ts.model("llama-3.1-405b", seq=8192)
for devices in (1024, 4096, 16384, 65536):
    cluster = ts.cluster("dgx-h100", devices=devices)
    step = ts.predict(model, cluster, ts.strategy("tp=8,pp=16,global_batch=2048", cluster=cluster))
    best = step.run(1e12).goodput
    hourly = goodput(best.write, 3600.0, best.mtbf, cluster.economics.restart)
    print(
        f"{devices:6,} devices: a failure every {best.mtbf / 3600:5.2f} h, {best.checkpoint / 1e12:.1f} TB written "
        f"in {best.write:4.1f} s every {best.interval / 60:4.1f} min: goodput {best.share:.1%}, hourly {hourly:.1%}"
    )
