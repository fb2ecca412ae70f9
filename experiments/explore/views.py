"""The views, in the order of their tabs."""

from experiments.explore.networks_view import NetworksView
from experiments.explore.particles_view import ParticlesView
from experiments.explore.view import View

VIEWS: tuple[type[View], ...] = (ParticlesView, NetworksView)
