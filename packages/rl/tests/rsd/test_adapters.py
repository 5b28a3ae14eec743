"""What RSD takes for granted of a stage is known before it begins."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from rapo.envs.stage import VectorStage
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.rsd import evaluate
from rapo.rsd.adapters import makes_stage


class Late:
    """Its memory shows in the second entry, and it says so once it has been reset."""

    stimuli = 1
    action_space, observation_space = Discrete(2), Box(0, 1, (2,))
    mask_at_reset = True

    def reset(self, *, seed=None, options=None):
        if self.mask_at_reset:
            self.memory_mask = np.array([False, True])
        return np.zeros(2), {}

    def activate(self, stimulus): ...

    def deactivate(self): ...

    def reset_observable(self, seed=None):
        return np.zeros(2)

    def step(self, action):
        return np.zeros(2), 1.0, False, False, {"reach": 1, "sensitive_mass": 1}


def test_a_mask_that_comes_with_the_reset_is_refused():
    with pytest.raises(ValueError, match="memory_mask was None before reset"):
        evaluate(Late(), lambda x: 0, 1, horizons=(5, 5, 5))


def test_a_mask_that_is_there_from_the_start_is_fine():
    class Early(Late):
        memory_mask = np.array([False, True])

    assert evaluate(Early(), lambda x: 0, 1, horizons=(5, 5, 5)).frame["RAG"][0] > 0.99


@pytest.mark.parametrize("observe", ["x", "xGH"])
def test_a_stage_knows_its_mask_before_it_begins(small_graph, observe):
    env = GraphDiffusionVectorEnv(1, graph=small_graph, fit=False, observe=observe)
    stage = VectorStage(env, 0, None)
    x = stage.begin(0)
    assert stage.memory_mask is None or stage.memory_mask.shape == x.shape[1:]
    assert (stage.memory_mask is None) == (observe == "x")


def test_a_stage_that_gives_too_many_episodes_is_refused(small_graph):
    class Greedy(GraphDiffusionVectorEnv):
        def stage(self, episodes, **how):
            return super().stage(episodes + 1, **{**how, "stimuli": None})

    env = Greedy(1, graph=small_graph, fit=False)
    assert makes_stage(env)
    with pytest.raises(ValueError, match="asked for up to 3 episodes and gave 4"):
        evaluate(env, lambda x: 0, 3, horizons=(5, 5, 5))
