from .basis import Basis as Basis
from .fit import fit_forces as fit_forces
from .law import ForceLaw as ForceLaw
from .law import ForceScore as ForceScore
from .law import Kernel as Kernel
