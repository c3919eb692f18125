"""Rent or own? USD per million tokens of Llama 3.1 70B on 1,024 H100s, rented at several prices and owned.

Owning is capital over five years, the network of the fabric, and electricity; no staff, building or interest.
"""

import numpy as np

import tradespace as ts

cluster = ts.cluster("dgx-h100", devices=1024)
model = ts.model("llama-3.1-70b", seq=8192)
best = ts.plan(model, cluster, ts.strategy("global_batch=1024", cluster=cluster)).best
assert best is not None

hourly = np.array([0.0, 1.7, 2.95, 6.88, 12.29])  # 0 = owned; a one-year contract; a survey's median; list prices
priced = ts.predict(model, ts.replace_path(cluster, "economics.rent", hourly / 3600), best.strategy)
tokens = best.strategy.global_batch * model.seq
for price, usd in zip(hourly, priced.cost / tokens * 1e6, strict=True):
    print(f"{'owned' if price == 0.0 else f'{price:5.2f} USD/h'}: {usd:.2f} USD per million tokens")
