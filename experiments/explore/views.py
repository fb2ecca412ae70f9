"""The views, in the order of their tabs."""

from experiments.explore.circles_view import CirclesView
from experiments.explore.networks_view import NetworksView
from experiments.explore.particles_view import ParticlesView
from experiments.explore.theory_view import TheoryView
from experiments.explore.view import View

VIEWS: tuple[type[View], ...] = (ParticlesView, NetworksView, TheoryView, CirclesView)
