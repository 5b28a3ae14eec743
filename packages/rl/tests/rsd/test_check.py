"""`check` names what is missing or broken, and finds nothing where nothing is."""

import random
import re

import gymnasium
import numpy as np
import pytest
from repository import DOCS

import rapo
from rapo.rsd import check, evaluate

ID = "rapo/GraphDiffusion-v0"


class Counter(gymnasium.Env):
    """A tiny platform: activity grows while the stimulus is on; `harm` is its memory."""

    stimuli = 2
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, np.inf, (2,))
    memory_mask = np.array([False, True])

    def __init__(self):
        self.harm, self.level, self.on, self.rng = 0.0, 0.0, False, np.random.default_rng(0)

    def _x(self):
        return np.array([self.level, self.harm])

    def reset(self, *, seed=None, options=None):
        self.harm, self.level, self.on = 0.0, 0.0, False
        return self._x(), {}

    def activate(self, stimulus):
        if not 1 <= stimulus <= self.stimuli:
            raise ValueError(stimulus)
        self.on = True

    def deactivate(self):
        self.on = False

    def reset_observable(self, seed=None):
        self.level, self.rng = 0.0, np.random.default_rng(seed)
        return self._x()

    def step(self, action):
        self.level = 0.9 * self.level + self.on * self.rng.random()
        self.harm += 0.01 * self.level * (self.level > 3)  # not within the first three steps
        return self._x(), 1.0, False, False, {"reach": self.level, "sensitive_mass": 0.0}

    def snapshot(self):
        state = self.rng.bit_generator.state["state"]
        words = [state[k] >> s & 0xFFFFFFFF for k in ("state", "inc") for s in range(0, 128, 32)]
        return {"it": np.array([self.harm, self.level, self.on]), "rng": np.array(words, np.uint64)}

    def restore(self, state):
        self.harm, self.level, on = state["it"]
        self.on = bool(on)
        words = [int(w) for w in state["rng"]]
        self.rng = np.random.default_rng(0)
        full = self.rng.bit_generator.state
        full["state"] = {
            name: sum(words[4 * i + j] << 32 * j for j in range(4))
            for i, name in enumerate(("state", "inc"))
        }
        self.rng.bit_generator.state = full

    def set_deformation(self, on): ...


def only(report, text):
    assert len(report.problems) == 1, str(report)
    assert text in report.problems[0]


@pytest.mark.parametrize("observe", ["x", "xGH"])
def test_our_environment_passes(small_graph, observe):
    env = gymnasium.make(ID, graph=small_graph, schedule="external", observe=observe)
    report = check(env)
    assert report.ok, str(report)
    assert "fine" in str(report)


def test_a_sound_environment_of_someone_else_passes():
    assert check(Counter()).ok


def test_an_attribute_called_memory_is_the_authors_own():
    class Replaying(Counter):
        """Keeps transitions for a learner, as many environments do."""

        memory_mask = None

        def __init__(self):
            super().__init__()
            self.memory = []

        def _x(self):
            return np.array([self.level])

    assert check(Replaying()).problems == []
    evaluate(Replaying(), lambda x: 0, episodes=1, horizons=(5, 5, 5))


def test_the_scars_of_harm_memory_are_recorded():
    class Scarred(Counter):
        class harm_memory:  # noqa: N801 - an attribute of the environment
            H = np.array([0.25, 0.5])

    result = evaluate(Scarred(), lambda x: 0, episodes=1, horizons=(5, 5, 5))
    assert result.scars.tolist() == [[0.25, 0.5]]


def test_missing_members_are_listed():
    report = check(gymnasium.make("CartPole-v1"))
    only(report, "lacks ['stimuli', 'activate', 'deactivate', 'reset_observable']")


def test_missing_info_is_named():
    class Silent(Counter):
        def step(self, action):
            return (*super().step(action)[:4], {"reach": -1})

    report = check(Silent())
    assert "info['reach'] is -1" in str(report) and "lacks 'sensitive_mass'" in str(report)


def test_an_observable_that_does_not_reset_is_caught():
    class Sticky(Counter):
        def reset_observable(self, seed=None):
            self.rng = np.random.default_rng(seed)
            return self._x()

    assert "the observable does not reset" in str(check(Sticky()))


def test_memory_in_the_observation_must_be_declared():
    class Leaky(Counter):
        memory_mask = None

    only(check(Leaky()), "the memory leaks through the observation: after Exposure and Decay")


def test_memory_that_leaks_later_is_caught_with_the_deformation_off():
    class Late(Counter):
        def _x(self):
            return np.array([self.level + (self.level > 0.5) * self.harm, self.harm])

    only(check(Late()), "with the deformation off and the same draws")


def test_draws_that_no_seed_restarts_are_caught():
    class Random(Counter):
        def reset_observable(self, seed=None):
            return super().reset_observable(None)

    assert "the draws do not restart" in str(check(Random()))


def test_a_snapshot_that_loses_state_is_caught():
    class Forgetful(Counter):
        def restore(self, state):
            harm = self.harm
            super().restore(state)
            self.harm = harm

    only(check(Forgetful()), "snapshot() loses state")


def test_an_unknown_stimulus_must_be_refused():
    class Lax(Counter):
        def activate(self, stimulus):
            self.on = True

    only(check(Lax()), "activate(3) is accepted with 2 stimuli")


def test_an_error_in_the_authors_code_is_a_finding():
    class Broken(Counter):
        def deactivate(self):
            raise KeyError("off")

    assert "leak: KeyError: 'off'" in str(check(Broken()))


def test_a_policy_with_state_that_survives_its_reset_is_caught():
    class Sneaky:
        """Counts what it has ever seen; its reset forgets nothing."""

        seen = 0

        def reset(self): ...

        def __call__(self, x):
            self.seen += 1
            return int(self.seen > 200)

    class Honest(Sneaky):
        def reset(self):
            self.seen = 0

    only(check(Counter(), Sneaky()), "the policy is not frozen")
    assert check(Counter(), Honest()).ok


def test_a_policy_that_learns_while_it_acts_is_caught():
    torch = pytest.importorskip("torch")

    class Learner(torch.nn.Linear):
        def forward(self, x):
            with torch.no_grad():
                self.bias += 0.1
            return super().forward(x)

    assert "its parameters changed while it acted" in str(check(Counter(), Learner(2, 2)))
    assert check(Counter(), torch.nn.Linear(2, 2)).ok


def test_stochastic_policies_with_a_law_are_frozen(small_graph):
    torch = pytest.importorskip("torch")
    env = gymnasium.make(ID, graph=small_graph, schedule="external")
    assert check(env, torch.nn.Linear(5, 3)).ok


def test_a_seed_that_reset_observable_ignores_is_caught():
    class Deaf(Counter):
        set_deformation = None

        def reset(self, *, seed=None, options=None):
            self.rng = np.random.default_rng(seed)
            return super().reset(seed=seed)

        def reset_observable(self, seed=None):
            self.level = 0.0
            return self._x()

    del Deaf.set_deformation
    assert "the draws do not restart" in str(check(Deaf()))


def test_a_reset_that_wipes_the_memory_is_caught():
    class Amnesiac(Counter):
        def reset_observable(self, seed=None):
            self.harm = 0.0
            return super().reset_observable(seed)

    assert "reset_observable() wipes the memory" in str(check(Amnesiac()))


def test_a_stimulus_that_cannot_be_switched_off_is_caught():
    class Endless(Counter):
        def deactivate(self): ...

    only(check(Endless()), "deactivate() changes nothing")


def test_reach_must_be_a_number():
    class Vector(Counter):
        def step(self, action):
            x, *rest, info = super().step(action)
            return x, *rest, {**info, "reach": np.array([1.0])}

    assert "info['reach'] is" in str(check(Vector()))


def test_discrete_and_undefined_observations_are_no_problem():
    class Scalar(Counter):
        memory_mask = None
        observation_space = gymnasium.spaces.Discrete(100)

        def _x(self):
            return int(self.level)

    class Undefined(Counter):
        def _x(self):
            return np.array([np.nan, self.harm])

    assert check(Scalar()).ok, str(check(Scalar()))
    assert check(Undefined()).ok


def test_the_environment_is_left_as_it_was(small_graph):
    env = gymnasium.make(
        ID, graph=small_graph, schedule="external", deform_phases=(True, True, False)
    )
    env.reset(seed=4)
    env.step(0)
    before = env.unwrapped.snapshot()
    assert check(env).ok
    for name, value in env.unwrapped.snapshot().items():
        assert np.array_equal(value, before[name])
    assert env.unwrapped.vector.options["deform_phases"] == (True, True, False)


def test_a_policy_of_another_action_space_is_caught():
    assert "returned 7" in str(check(Counter(), lambda x: np.int64(7)))
    assert "the policy: policy must be a callable" in str(check(Counter(), 3))


@pytest.fixture(scope="module")
def feed():
    """The environment that the docs show."""
    page = DOCS / "run-rsd.md"
    snippets = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    (code,) = [code for code in snippets if "class Feed" in code]
    names = {"gymnasium": gymnasium, "rapo": rapo}
    exec(compile(code, str(page), "exec"), names)
    return names["Feed"]


class AtOnce(Counter):
    """A sound environment whose memory acts from the first step on."""

    memory_mask = None

    def _x(self):
        return np.array([self.level])

    def step(self, action):
        shown = self.rng.poisson(10 / (1 + self.harm)) if self.on else 0
        self.level = 0.5 * self.level + shown
        self.harm += 0.1 * shown
        return self._x(), float(shown), False, False, {"reach": self.level, "sensitive_mass": 0.0}


for name in ("snapshot", "restore", "set_deformation"):
    setattr(AtOnce, name, property())  # hasattr() is False


def test_the_environment_of_the_docs_is_fine(feed):
    assert check(feed()).ok, str(check(feed()))


def test_a_memory_that_acts_at_once_is_fine():
    assert not hasattr(AtOnce(), "snapshot")
    report = check(AtOnce())
    assert report.ok, str(report)
    assert any("acts at once" in note for note in report.notes)  # which could hide something else


@pytest.mark.parametrize("generator", ["numpy", "legacy", "python", "nested"])
def test_draws_that_do_not_restart_are_caught_beside_a_memory_that_acts_at_once(generator):
    class Rolls:
        def __init__(self):
            self.rng = np.random.default_rng(0)

    class Deaf(AtOnce):
        """Its draws are those of reset(), whatever reset_observable() is told."""

        def reset(self, *, seed=None, options=None):
            made = {
                "numpy": lambda: np.random.default_rng(0),
                "legacy": lambda: np.random.RandomState(0),
                "python": lambda: random.Random(0),
                "nested": Rolls,
            }
            self.rolls = made[generator]()
            return super().reset(seed=seed)

        def reset_observable(self, seed=None):
            self.level = 0.0
            roll = getattr(self.rolls, "rng", self.rolls).random
            self.rng = type("Rolls", (), {"poisson": lambda self, rate: rate * roll()})()
            return self._x()

    assert "the draws do not restart" in str(check(Deaf()))


@pytest.mark.parametrize("held", [True, False])
def test_draws_of_a_global_generator_are_caught(held):
    class Global(AtOnce):
        def reset(self, *, seed=None, options=None):
            np.random.seed(0)  # noqa: NPY002 (what the check is about)
            return super().reset(seed=seed)

        def reset_observable(self, seed=None):
            self.level = 0.0
            if held:  # a module, which cannot be copied
                self.rng = np.random
            return self._x()

        def step(self, action):
            if not held:
                self.rng = np.random.default_rng(int(1e6 * np.random.random()))  # noqa: NPY002
            return super().step(action)

    assert "the draws do not restart" in str(check(Global()))


def test_something_hidden_that_does_not_reset_is_caught():
    """Its observation looks reset, its level is not; the memory says that it was not it."""

    class Hidden(Counter):
        def reset_observable(self, seed=None):
            self.rng = np.random.default_rng(seed)
            return np.array([0.0, self.harm])

    class Unswitched(Hidden):
        set_deformation = property()

    for env in (Hidden(), Unswitched()):
        report = check(env)
        assert not report.ok and "does not reset" in str(report), str(report)


class Uncopied:
    """Holds on to something that cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("a connection")


def test_an_environment_that_cannot_be_copied_is_judged_too(feed):
    class Held(Uncopied, AtOnce):
        pass

    class HeldFeed(Uncopied, feed):
        pass

    class Itself(AtOnce):
        def __deepcopy__(self, memo):
            return self

    class Deaf(Uncopied, AtOnce):
        def reset(self, *, seed=None, options=None):
            self.rng = np.random.default_rng(seed)
            return super().reset(seed=seed)

        def reset_observable(self, seed=None):
            self.level = 0.0
            return self._x()

    for env in (Held(), HeldFeed(), Itself()):
        assert check(env).ok, str(check(env))
    assert "the draws do not restart" in str(check(Deaf()))


def test_observations_that_are_written_over_are_no_problem():
    class Buffer(Counter):
        """Returns the same array every time, and tells nothing of its memory."""

        memory_mask = None
        set_deformation = property()

        def __init__(self):
            super().__init__()
            self.buffer = np.zeros(1)

        def _x(self):
            self.buffer[:] = self.level
            return self.buffer

    class Sticky(Buffer):
        def reset_observable(self, seed=None):
            self.rng = np.random.default_rng(seed)
            return self._x()

    assert check(Buffer()).ok
    assert "the observable does not reset" in str(check(Sticky()))
