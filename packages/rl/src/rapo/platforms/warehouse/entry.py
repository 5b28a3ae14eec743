"""The warehouse's entry."""

from rapo.platforms.entry import Baseline, Entry

WAREHOUSE = Entry(
    name="warehouse",
    env="rapo/Warehouse-v0",
    made_by="rapo.platforms.warehouse:Warehouse",
    action=2,
    baselines=(Baseline("zone lock-out by timer", {"kernel": "lockout"}),),
    reach="stopped robots",
    sensitive="robots in hazard zones",
    returns="deliveries",
    files=("movingai_mapf_maps/warehouse-10-20-10-2-1.map.gz",),
)
