"""Progress: a bar in a terminal or a notebook, or a function of the user's own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Union

#: Called with the name of what goes on, the steps done and the steps in all.
Callback = Callable[[str, int, int], object]
Progress = Union[bool, Callback, None]

Native = Callable[[str, int, int, "str | None"], object]

_WIDTH = 30
#: Seconds before anything is shown, and between two updates.
_PATIENCE = 0.5
_PAUSE = 0.1


def start(progress: Progress) -> Native | None:
    """What to tell: by default a bar where somebody watches, otherwise nothing."""
    if progress is False:
        return None
    if callable(progress):
        return _own(progress)
    display = _notebook()
    if display is not None:
        return Bar(display)
    if progress is True or sys.stderr.isatty():
        return Bar(None)
    return None


def end(told: Native | None) -> None:
    """Clears the bar."""
    if isinstance(told, Bar):
        told.end()


def _own(progress: Callback) -> Native:
    def tell(phase: str, done: int, total: int, words: str | None) -> None:
        if words is None:
            progress(phase, done, total)

    return tell


def _notebook() -> Any:
    """A place in a notebook to draw in, if there is one."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    return None if handle is None else (handle, HTML)


class Bar:
    """One line with a bar and the time left."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.began = self.phase_began = time.monotonic()
        self.shown = 0.0
        self.phase = ""
        self.drawn = False

    def __call__(self, phase: str, done: int, total: int, words: str | None) -> None:
        now = time.monotonic()
        if phase != self.phase or done == 0:
            self.phase, self.phase_began = phase, now
        if now - self.began < _PATIENCE or now - self.shown < _PAUSE and done < total:
            return
        self.shown = now
        left = (now - self.phase_began) / max(done, 1) * max(total - done, 0)
        share = min(done / total, 1.0) if total else 0.0
        if self.place is not None:
            handle, html = self.place
            handle.update(html(
                f'<code>{phase}</code> <progress value="{share:.3f}"></progress> '
                f"{done}/{total}, about {_time(left)} left"
            ))
        else:
            full = round(share * _WIDTH)
            bar = "#" * full + "." * (_WIDTH - full)
            print(f"\r{phase:<12} {bar} {done}/{total} · {_time(left)} left  ", end="", file=sys.stderr, flush=True)
        self.drawn = True

    def end(self) -> None:
        """Takes the bar away."""
        if self.place is not None:
            handle, html = self.place
            handle.update(html(""))
        elif self.drawn:
            print("\r" + " " * 79 + "\r", end="", file=sys.stderr, flush=True)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
