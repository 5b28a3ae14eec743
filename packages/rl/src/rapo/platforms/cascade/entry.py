"""The cascade's entry. Its environment is `rapo.envs`' own, so it is no `BatchPlatform`."""

from rapo.platforms.entry import Baseline, Entry

CASCADE = Entry(
    name="cascade",
    env="rapo/GraphDiffusion-v0",
    made_by="rapo.envs.vector:GraphDiffusionVectorEnv",
    action=0,
    baselines=(
        Baseline(
            "transient throttle",
            {"deformation": "off"},
            "rapo.platforms.cascade.baseline:ThrottlePolicy",
        ),
    ),
    reach="active nodes",
    sensitive="active nodes of V_sens",
    returns="injections served, and a little for activity outside V_sens",
    seed="graph_seed",
)
