from .platform import FIELDS as FIELDS
from .platform import Twin as Twin
from .setting import Setting as Setting
