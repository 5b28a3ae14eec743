"""Public names of the agents and the modules that they are loaded from."""

from .agent import Agent as Agent
from .agent import load_agent as load_agent
from .config import PPOConfig as PPOConfig
from .env_agent import EnvAgent as EnvAgent
from .env_agent import load_env_agent as load_env_agent
from .env_config import EnvConfig as EnvConfig
from .methods import METHODS as METHODS
from .methods import Method as Method
from .platform_agent import load_platform_agent as load_platform_agent
from .platform_config import PlatformConfig as PlatformConfig
from .ppo import PPO as PPO
from .shield import Shield as Shield
from .train_config import TrainConfig as TrainConfig
