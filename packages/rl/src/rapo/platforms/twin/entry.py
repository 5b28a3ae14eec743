"""The twin's entry."""

from rapo.platforms.entry import Baseline, Entry

TWIN = Entry(
    name="twin",
    env="rapo/Twin-v0",
    made_by="rapo.platforms.twin:Twin",
    action=4,
    baselines=(Baseline("fixed high-temperature trip", {"kernel": "trip"}),),
    reach="units above 388 K",
    sensitive="units above 394 K",
    returns="conversion",
    SM_R=0.9,
    SM_vs_P0=0.8,
)
