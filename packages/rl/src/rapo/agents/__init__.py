"""Agents: PPO with Lagrangian duals, and the methods of the paper as rows of one table.

Names load on first use: most of them need torch.

Its files, in the order in which data flows:

- methods: the table: what each method sees, pays, samples from and is made of
- config, gru_kernel, networks, model, advantage, loss, normaliser, lagrangian, rollout, ppo: the
  optimiser, read in this order
- references, train_config, run_file, tracking, train, checkpoint, agent: budgets, runs in
  folders, frozen policies
- shield: actions blocked by rollouts under P0
- gym_task, episodic, env_config, env_agent: any Gymnasium environment with a cost; budgets per
  episode; runs and policies of it
- platform_config, platform_agent: the paper's methods on any platform, which see a summary of
  the fields
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
