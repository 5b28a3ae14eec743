"""Public names of the gate and the modules that they are loaded from."""

from .audit import Changed as Changed
from .audit import Effect as Effect
from .config import GateConfig as GateConfig
from .decide import ConflictError as ConflictError
from .decide import Decision as Decision
from .gate import Field as Field
from .gate import Gate as Gate
from .log.store import StoreError as StoreError
from .reports import HarmReport as HarmReport
from .reports import ReportResult as ReportResult
