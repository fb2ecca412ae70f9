from .classification import PHASES as PHASES
from .classification import Majority as Majority
from .classification import classify_phases as classify_phases
from .diagram import Axis as Axis
from .diagram import Cell as Cell
from .diagram import PhaseDiagram as PhaseDiagram
from .diagram import Refinement as Refinement
from .diagram import phase_diagram as phase_diagram
