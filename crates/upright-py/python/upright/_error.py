"""What went wrong, in Python's terms."""

from __future__ import annotations

import re
from typing import Any


class Error(Exception):
    """What upright refuses or cannot do.

    `str()` says what is wrong and, where there is one, how to mend it.

    >>> import upright
    >>> try:
    ...     upright.fit("missing.onnx", "train/")
    ... except upright.Error as e:
    ...     print(e.code)
    io
    """

    #: A stable name of the kind of problem, `area::problem`.
    code: str
    #: What would help; empty where the message says it all.
    hint: str

    def __init__(self, message: str, code: str = "usage", hint: str = "") -> None:
        super().__init__(message, code, hint)
        self.message = message
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class Notice(UserWarning):
    """Something worth knowing that does not stop the work."""


def worded(message: str, code: str, help: str) -> Error:
    """An error of the library's, which speaks of the command line's flags."""
    return Error(terms(message), code, terms(help))


def notice(code: str, message: str, help: str) -> Notice:
    """The same for what is only worth knowing."""
    words = f"{terms(message)} [{code}]"
    return Notice(f"{words}; {terms(help)}" if help else words)


_COMMANDS = {
    "list": "upright.list_scores() and the other tables",
    "inspect": "upright.inspect",
    "fit": "upright.fit",
    "predict": "predict",
    "report": "report",
    "check": "upright.inspect",
}
_COMMAND = re.compile(r"`upright (\w+)( [^`]*)?`")
_SET = re.compile(r"--set ([\w.]+)=([^\s`,;]+)")
_VALUE = re.compile(r"(?:--([a-z][a-z-]*)|(?<![\w-])-(t))(?:[ =](-?[^\s`;,)]+))?")


def terms(text: str) -> str:
    """Text about flags and commands as one about arguments and functions.

    >>> terms("use `--score energy`, or `--set gate.drop=0.5`")
    'use `score="energy"`, or `set={"gate.drop": 0.5}`'
    >>> terms("`--held-out DATA` must come first; see `upright inspect MODEL`")
    '`held_out=...` must come first; see `upright.inspect`'
    >>> terms("add `--resize 224 --channels rgb`, or `--strict`")
    'add `resize=224, channels="rgb"`, or `strict`'
    """

    def command(found: re.Match[str]) -> str:
        name = found[1]
        return f"`{_COMMANDS.get(name, 'upright ' + name)}`"

    def value(found: re.Match[str]) -> str:
        name = "transforms" if found[2] else found[1].replace("-", "_")
        given = found[3]
        if given is None or given.startswith("-") and not _number(given):
            return name
        if re.fullmatch(r"[A-Z|%\[\],]+", given):
            return f"{name}=..."
        return f"{name}={given if _number(given) else chr(34) + given + chr(34)}"

    def inside(code: re.Match[str]) -> str:
        words = _SET.sub(_setting, code[0])
        words = _VALUE.sub(value, words)
        return re.sub(r"(=\S+) (?=[a-z_]+=)", r"\1, ", words)

    text = _COMMAND.sub(command, text)
    text = re.sub(r"`[^`]*`", inside, text)
    return re.sub(r"(?<![`\w])--[a-z][a-z-]*", lambda m: _VALUE.sub(value, m[0]), text)


def _setting(found: re.Match[str]) -> str:
    given = found[2] if _number(found[2]) else f'"{found[2]}"'
    return f'set={{"{found[1]}": {given}}}'


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return re.fullmatch(r"-?\d+(\.\d+)?/\d+(\.\d+)?", text) is not None
    return True


def unexpected(what: str, got: Any, hint: str) -> Error:
    """An argument of a kind that cannot be used."""
    return Error(f"{what}: cannot use {type(got).__name__}", "input::type", hint)
