"""The views of the explorer, one for each system, in the order of their tabs."""

from grokphys.explorer.view import View
from grokphys.explorer.views.circles import CirclesView
from grokphys.explorer.views.networks import NetworksView
from grokphys.explorer.views.neurons import NeuronsView
from grokphys.explorer.views.particles import ParticlesView
from grokphys.explorer.views.theory import TheoryView

VIEWS: tuple[type[View], ...] = (ParticlesView, NetworksView, TheoryView, CirclesView, NeuronsView)
