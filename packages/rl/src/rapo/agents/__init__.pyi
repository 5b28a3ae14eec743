"""Public names of the agents and the modules that they are loaded from."""

from .agent import Agent as Agent
from .config import PPOConfig as PPOConfig
from .env_agent import EnvAgent as EnvAgent
from .methods import METHODS as METHODS
from .methods import Method as Method
from .ppo import PPO as PPO
from .resolve import resolve as resolve
from .run_config import RunConfig as RunConfig
from .run_config import graph_run as graph_run
from .saved_run import load_agent as load_agent
from .shield import Shield as Shield
