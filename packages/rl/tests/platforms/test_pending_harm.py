"""Harm that the observation shows as it arrives: found, though nothing is pending for long."""

import numpy as np
import pytest
from toy_platforms import Feed

from rapo.platforms import PlatformEnv
from rapo.rsd import check, evaluate


class Alarmed(PlatformEnv):
    """Shows the harm that arrives in place of the second entry; the feed drains in the washout."""

    def step(self, action):
        x, *rest, info = super().step(action)
        x[1] = self.shown(info["harm"])
        return x, *rest, info

    def shown(self, harm):
        return harm


class Emptied(Alarmed):
    """The same, but harm that was on its way when the observable was reset is not shown."""

    def reset_observable(self, seed=None):
        self.quiet = self.harm_memory.delay
        return super().reset_observable(seed)

    def reset(self, **options):
        self.quiet = self.harm_memory.delay
        return super().reset(**options)

    def shown(self, harm):
        self.quiet -= 1
        return harm if self.quiet < 0 else 0.0


def made(kind):
    return kind(platform=Feed, delay=30, schedule="external")


def wary(x):
    return 0 if x[1] > 0.3 else 2


def test_the_leak_is_found_and_nothing_else():
    report = check(made(Alarmed))
    assert len(report.problems) == 1 and report.problems[0].startswith("pending harm leaks")
    assert "entry 1" in report.problems[0]


def test_emptying_what_is_shown_mends_it():
    assert "pending" not in str(check(made(Emptied)))


def test_declared_as_memory_it_is_none():
    class Declared(Alarmed):
        memory_mask = np.array([False, True, False])

    assert "pending" not in str(check(made(Declared)))


@pytest.mark.parametrize(("kind", "replays"), [(Alarmed, False), (Emptied, True)])
def test_what_it_does_to_the_diagnostic(kind, replays):
    """Coupled and under P0 everything must replay; with the leak it does not."""
    env = kind(platform=Feed, delay=30, schedule="external", deformation="off")
    found = evaluate(env, wary, 2, 0, True, horizons=(80, 20, 80))
    same = np.array_equal(found.of_phase("reward", 0), found.of_phase("reward", 2))
    inside = np.array_equal(
        found.of_phase("sensitive_mass", 0), found.of_phase("sensitive_mass", 2)
    )
    assert (same and inside) == replays
