"""What a view is: one system of the toolkit, live on the stage of a page."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from grokphys.explorer.films.export import Film
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    from grokphys.explorer.session import Session


class View(ABC):
    """One tab of a page. It is made, with all it holds, when its tab is first looked at.

    The session calls these methods one at a time: `advance` in a worker thread, while nothing else of this
    page runs; all others on the server's event loop, with the document locked, where they may touch models
    and widgets. What any of them raises becomes a sentence on the page, and the view is paused.

    A view that wants to change state on its own (a widget was moved, a point dragged) does so in a callback
    made by ``session.reaction(function)``, which catches errors in the same way and renews the status.
    """

    slug: ClassVar[str]
    """Name in ids and in file names: "particles"."""
    name: ClassVar[str]
    """Name on the tab."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Modules that take long to import."""
    reads_files: ClassVar[bool] = False
    """Whether a page begins with this view where the command was given files (`session.files`)."""

    @classmethod
    def prepare(cls) -> None:
        """Do what takes long the first time; a worker does it before the first view of this kind is made."""
        for module in cls.needs:
            importlib.import_module(module)

    def __init__(self, session: "Session") -> None:
        self.session = session

    @abstractmethod
    def panel(self) -> Any:
        """Return what stands on the stage, a Bokeh model made once; see `theme.stage`."""

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Move the state on by `steps` steps, and touch no model: a frame while it plays, or one step."""

    @abstractmethod
    def show(self, *, whole: bool = True) -> None:
        """Bring the state to the screen.

        `whole` is False for the frames of play between which little is to be sent; what need not move 25
        times a second (curves against time) may wait for the whole ones, which come several times a second.
        """

    @abstractmethod
    def reset(self) -> None:
        """Go back to the start."""

    def start(self) -> None:  # noqa: B027 - most views have nothing to do
        """Be looked at: the tab was chosen."""

    def stop(self) -> None:  # noqa: B027
        """Be left, for another tab or for good."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing to advance to; play stops then."""
        return False

    @abstractmethod
    def status(self) -> Mapping[str, str]:
        """State in words: {"step": "120", "circle ratio": "1.31"} in #status-step, #status-circle-…."""

    @abstractmethod
    def python(self) -> str:
        """Return the calls that reproduce what is on screen, bit by bit; `E` is its last state."""

    @abstractmethod
    def trajectory(self) -> Trajectory:
        """Return the run as it is kept, to be saved in the project's file; a copy that stays."""

    @abstractmethod
    def film(self) -> Film:
        """Return the run as figures, from copies: the page goes on while a worker draws it."""
