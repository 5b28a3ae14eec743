"""The entry of routing."""

from rapo.platforms.entry import Baseline, Entry

ROUTING = Entry(
    name="routing",
    env="rapo/Routing-v0",
    made_by="rapo.platforms.routing:Routing",
    action=1,
    baselines=(Baseline("route-flap damping", {"kernel": "damping"}),),
    reach="flows in flight",
    sensitive="flows on grey links",
    returns="goodput",
    files=("topology_zoo/topologies.jsonl.gz",),
)
