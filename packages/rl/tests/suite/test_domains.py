"""The domains of the suite."""

import numpy as np
import pytest

from rapo.suite.domains import DOMAINS, domains_named


@pytest.mark.parametrize("name", DOMAINS)
def test_entries_fit_their_platforms(name):
    domain = DOMAINS[name]
    env = domain.make(0, "stand-in")
    assert env.single_action_space.contains(np.int64(domain.action))
    assert 0 < domain.SM_R < 1 and domain.baselines
    for baseline in domain.baselines:
        env.like(1, **baseline.options)


def test_domains_come_in_the_order_of_the_scorecard():
    assert [d.name for d in domains_named("twin, feed")] == ["feed", "twin"]
    assert domains_named("all") == list(DOMAINS.values())
    with pytest.raises(ValueError, match="'roads'"):
        domains_named("feed,roads")
