"""Which unknown matters most? Sobol indices of the step time of DeepSeek-V3 on 2,048 H800s.

All resources of the cluster vary by +-20 % at once. Needs the extra tradespace[sensitivity].
"""

import tradespace as ts

cluster = ts.cluster("deepseek-h800-v3", devices=2048)
strategy = ts.strategy("pp=16,ep=64,global_batch=15360,precision=fp8", cluster=cluster)
for index in ts.sobol(ts.model("deepseek-v3", seq=4096), cluster, strategy, samples=512):
    print(f"{index.field:30s} {index.first:5.2f} alone {index.total:5.2f} with others")
