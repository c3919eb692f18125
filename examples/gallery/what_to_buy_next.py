"""What should I buy next? The worth of every resource of 1,024 H100s for Llama 3.1 405B, as a tornado."""

import tradespace as ts
from tradespace.views.figures import save

model = ts.model("llama-3.1-405b", seq=8192)
cluster = ts.cluster("dgx-h100", devices=1024)
found = ts.whatif(model, cluster, ts.strategy("global_batch=512", cluster=cluster))
for effect in found.effects:
    print(f"{effect.resource.name:28s} {effect.elasticity():+.3f}")
save(found.plot(), "what-to-buy-next.png")
