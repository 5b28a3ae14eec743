from .platform import Warehouse as Warehouse
from .setting import Setting as Setting
