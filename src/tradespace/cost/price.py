"""Money, power, energy and carbon of a job: what its devices, their network and their site cost while it runs."""

from __future__ import annotations

from tradespace.inputs.cluster import Cluster, Device
from tradespace.inputs.economics import Economics
from tradespace.network.pods import idle
from tradespace.num import Num, maximum, where


def rated_power(device: Device, economics: Economics) -> Num:
    """Rated watts of one device with its share of the server: the system's, else the chip's x the server factor.

    Source: systems' datasheets; factor: epoch-research/training-cost-trends (arXiv 2405.21015).
    """
    return where(economics.power > 0.0, economics.power, device.power * economics.server)


def site_power(cluster: Cluster) -> Num:
    """Average watts of the whole job at the site's meter: devices x rated power x load x PUE.

    Source: Patterson et al. 2021 (arXiv 2104.10350), section 2: processors x power per processor x PUE.

    >>> from tradespace.inputs import load
    >>> round(site_power(load.cluster("dgx-h100", devices=8)))  # 10.2 kW x 0.75 x 1.1
    8415
    """
    economics = cluster.economics
    return cluster.devices * rated_power(cluster.device, economics) * economics.load * economics.pue


def switch_tiers(endpoints: Num, radix: Num) -> Num:
    """Tiers of a fat tree of switches with `radix` ports: 1 up to radix endpoints, 2 up to radix^2/2, else 3.

    Source: Leiserson 1985; sizes as in Insights into DeepSeek-V3 (ISCA 2025), table 3.

    >>> switch_tiers(64.0, 64.0), switch_tiers(2048.0, 64.0), switch_tiers(65536.0, 64.0)
    (1.0, 2.0, 3.0)
    """
    return 1.0 + where(endpoints > radix, 1.0, 0.0) + where(endpoints > radix * radix / 2.0, 1.0, 0.0)


def network_capital(cluster: Cluster) -> Num:
    """USD per device of the switched outermost dim: (2L - 1) ports and L links each in a fat tree of L tiers.

    A port of a tier below the top comes with one up; oversubscription thins out what is above the first tier. Other
    kinds of network (tori) are part of the device's price. Source: port and link counts of a fat tree.
    """
    economics, outer = cluster.economics, cluster.network[-1]
    if outer.kind != "switch":
        return 0.0
    above = (switch_tiers(cluster.devices / economics.rails, economics.switch_radix) - 1.0) / outer.oversubscription
    ports, links = 1.0 + 2.0 * above, 1.0 + above
    return (ports * economics.switch_port + links * economics.switch_link) * (outer.bandwidth / economics.port_rate)


def capital(cluster: Cluster) -> Num:
    """USD to buy the cluster: devices with their servers, and the network."""
    return cluster.devices * (cluster.economics.capital + network_capital(cluster))


def owning(cluster: Cluster) -> Num:
    """USD per second of owning and running the cluster: capital over its life and the electricity of the site.

    Staff, building and interest are left out. Source: total cost of ownership as acquisition + power x PUE x hours x
    price, the form that public calculators use.
    """
    economics = cluster.economics
    return capital(cluster) / economics.life + site_power(cluster) * economics.electricity


def paid(cluster: Cluster) -> Num:
    """Devices paid for over devices of the job: spares, and what the job leaves idle in its pods.

    >>> from tradespace.inputs import load
    >>> paid(load.cluster("gb200-nvl72", devices=256))
    1.125
    """
    return (1.0 + cluster.economics.spares) * idle(cluster)


def rate(cluster: Cluster) -> Num:
    """USD per second of all devices paid for: rented where a rent is known, else owned; 0 if neither is."""
    economics = cluster.economics
    owned = where(economics.capital > 0.0, owning(cluster), 0.0)
    rented = cluster.devices * economics.rent
    return paid(cluster) * where(economics.rent > 0.0, rented, owned)


def million_tokens(usd_per_second: Num, tokens_per_second: Num) -> Num:
    """USD for 1e6 trained tokens.

    >>> round(million_tokens(8 * 2.0 / 3600, 8 * 10_000), 4)
    0.0556
    """
    return 1e6 * usd_per_second / maximum(tokens_per_second, 1e-30)
