from .platform import Routing as Routing
from .setting import Setting as Setting
