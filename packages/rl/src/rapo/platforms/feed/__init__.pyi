from .claims import Claims as Claims
from .claims import claims_of as claims_of
from .claims import stand_in as stand_in
from .platform import Feed as Feed
from .setting import Setting as Setting
