"""Agents: PPO with Lagrangian duals, and the methods of the paper as rows of one table.

Names load on first use: most of them need torch.

Its files, in the order in which data flows:

- methods: the table: what each method sees, pays, samples from and is made of
- config, gru_kernel, networks, model, advantage, loss, normaliser, lagrangian, rollout, ppo: the
  optimiser, read in this order
- run_config, run_file: everything that a run depends on, and the same as a file
- resolve, budget_units, cost_env, episode_budget: what a config stands for: its environments, the
  units of its budgets, any Gymnasium environment with a cost, and budgets per episode
- train, checkpoint, tracking: a run in a folder, which can be gone on with
- agent, env_agent, shield, saved_run: frozen policies, and loading them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
