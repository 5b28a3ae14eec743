"""The feed's entry."""

from rapo.platforms.entry import Baseline, Entry

FEED = Entry(
    name="feed",
    env="rapo/Feed-v0",
    made_by="rapo.platforms.feed:Feed",
    action=4,
    baselines=(
        Baseline("false rate, recent", {"kernel": "false-rate"}),
        Baseline("false rate, all time", {"kernel": "false-rate", "setting": {"rate_window": 1e9}}),
    ),
    reach="users on the pushed channel",
    sensitive="users on claims labelled false",
    returns="engagement",
    files=("twitter15_rumor_cascades/cascades.csv.gz", "twitter15_rumor_cascades/trees.csv.gz"),
)
