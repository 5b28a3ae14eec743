"""Jobs of the suite have names that tell everything their results depend on."""

from dataclasses import replace

from rapo.suite.measure import Measure
from rapo.suite.policies import ScoredPolicy
from rapo.suite.sizes import Size

TINY = Size("tiny", (0, 1), 2, (70, 20, 70))


def test_a_job_is_named_by_everything_it_depends_on():
    one = Measure("feed", 0, TINY, ScoredPolicy(), "x", "stand-in", "abc")
    changes = [
        {"domain": "routing"}, {"seed": 1}, {"size": replace(TINY, episodes=3)},
        {"size": replace(TINY, horizons=(70, 20, 71))}, {"policy": ScoredPolicy("a:b", "f")},
        {"policy": ScoredPolicy("a:b", "g")}, {"observe": "xsummary"}, {"data": "real"},
        {"made_of": "abd"},
    ]  # fmt: skip
    keys = [replace(one, **change).key for change in changes]
    assert len({one.key, *keys}) == 1 + len(changes)
    assert replace(one, seconds=9.0).key == one.key
