"""What does a run cost? Llama 3.1 405B on 16,384 H100s beside what Meta published.

Prints days, device-hours, money, energy and failures, each with the row of the catalog that it rests on.
"""

import tradespace as ts

model = ts.model("llama-3.1-405b", seq=8192)
cluster = ts.cluster("dgx-h100", devices=16384)
step = ts.predict(model, cluster, ts.strategy("tp=8,pp=16,vp=8,global_batch=2048", cluster=cluster))
run = step.run(15.6e12)

print(f"{run.device_seconds / 3600e6:.1f} M device-hours (the model card says 30.84 M, other stages included)")
print(f"{run.failures / run.seconds * 54 * 86400:.0f} failures in 54 days (the paper counts 419)")
print(
    f"goodput {run.goodput.share:.1%} with a checkpoint every {run.goodput.interval / 60:.1f} min (published: > 90 %)"
)
print(f"{run.usd / 1e6:.0f} M USD rented, {run.joule / 3.6e12:.1f} GWh, {step.power / 1e6:.1f} MW")
for name, text in step.to_dict()["cost"]["basis"].items():
    if name in ("rent", "power", "pue", "mtbf"):
        print(f"  {name}: {text}")
