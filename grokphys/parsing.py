"""Translation of a command line into a call, or into a sentence that refuses it."""

import ast
import contextlib
import io
import re
import shutil
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import tyro

from grokphys.options import unwrapped
from physics.errors import InputError

Command = Callable[..., int]
RULE, COLORED = re.compile(r"[-─]{5,}"), re.compile(r"\x1b\[[\d;]*m")
"""A line that parts a box of the parser, and the codes that set colors in a terminal."""
RENAMED: dict[str, dict[str, str]] = {
    "analyze": {"--out": "--table"},
    "survival": {"--out": "--table", "--threshold": "--signal-threshold"},
    "fit-ode": {"--out": "--directory", "--kind": "--form"},
    "import": {"--steps": "--steps-array"},
    "phases": {"--out": "--directory"},
    "sweep": {"--out": "--directory"},
    "reproduce": {"--out": "--directory", "--overwrite": "--again"},
    "bench": {"--out": "--directory"},
    "demo": {"--out": "--directory"},
}
"""Options that were renamed; the old names are still understood, with a warning."""
SPELLED: dict[str, dict[str, str]] = {
    "fit-ode": {"kind": "--form"},
    "train": {"thresholds": "--threshold"},
}
"""Options that have another name than the argument of the library that they are for."""
KINDS = {"INT": "a whole number", "FLOAT": "a number", "STR": "a word"}
LONGEST_VALUE = 80
"""Largest number of characters of a value that a message of the parser repeats."""


def _choices(found: re.Match[str]) -> str:
    """Return the sentence on a wrong choice; the parser lists those of an optional option in any order."""
    allowed = re.findall(r"'[^']*'", found[3])
    if "'None'" in allowed:
        allowed = sorted(set(allowed) - {"'None'"})
    return f"{found[2]} must be one of {', '.join(allowed)}, got {found[1]}"


def _parts(found: re.Match[str]) -> str:
    """Return the sentence on an option of several values, of which one is of another type."""
    kinds = re.findall(r"Literal\[([^]]*)\]|(\w+)(?:, |$)", found[3])
    words = [f"one of {literal}" if literal else KINDS.get(name.upper(), name) for literal, name in kinds]
    each = f"{len(words)} values, each {words[0]}" if len(set(words)) == 1 else ", ".join(words)
    return f"{found[1]} must be {each}, got {found[2]}"


REWORDED: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"^(?i:invalid) choice (.+) for argument '(.+)'\. Expected one of \((.+?),?\)$", _choices),
    (r"^Missing value for argument '(.+)'\. Expected 1 values$", r"\1 needs a value"),
    (r"^Missing value for argument '(.+)'\. Expected (\d+) values$", r"\1 needs \2 values"),
    (
        r"^Missing from (grokphys [\w-]+): (\S+(?: [A-Z]+)?) (.)(.*?)(?:\. .*)?$",
        lambda found: f"{found[1]} needs {found[2]}, the {found[3].lower()}{found[4]}",
    ),
    (r"^(\S+): Could not parse arguments \[(.+)\] into tuple type \S+?\[(.+)\]$", _parts),
    (r"^(\S+): Could not find valid parse for arguments: \[(.+)\]$", r"\1 must be numbers, got \2"),
    (
        r"^(\S+): Exceeds the limit \((\d+) digits\).*: value has (\d+) digits.*$",
        r"\1 must be a whole number of at most \2 digits, got one of \3",
    ),
    (r"^Unrecognized options: (?!-)", "unrecognized arguments: "),
)
"""Messages of the parser, and the same in the form of the other messages."""


def parsed(
    words: Sequence[str],
    commands: Mapping[str, Command],
    *,
    description: str,
    warn: Callable[[str], None],
) -> Callable[[], int]:
    """Return the call that a command line denotes.

    Parameters
    ----------
    words : sequence of str
        Words of the command line, without the name of the program.
    commands : mapping of str to callable
        The commands by name. Each is a function whose signature is its options.
    description : str
        Text at the head of the help of all commands.
    warn : callable
        Function that receives a sentence for each option with a former name.

    Returns
    -------
    callable
        Function without arguments that runs the command and returns its exit status.

    Raises
    ------
    InputError
        If there is no such command, or an option or its value is not understood.
    SystemExit
        If the command line asks for help, which has then been printed.
    """
    words = _today(_refuse_empty(words), warn)
    shown, said, named = _Shown(sys.stdout), io.StringIO(), "grokphys"
    options: dict[str, Any] = {"config": (tyro.conf.OmitArgPrefixes,)}
    call: Callable[[], int]
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(said):
            if words and words[0] in commands:
                named = f"grokphys {words[0]}"
                call = tyro.cli(_later(commands[words[0]]), prog=named, args=words[1:], **options)
            else:  # help of all, or a sentence
                if words and not words[0].startswith("-"):
                    near = get_close_matches(words[0], commands, 1)
                    advice = f"; did you mean {near[0]}?" if near else ""
                    raise InputError(f"there is no command {words[0]!r}{advice}; see grokphys --help")
                others = {name: _stand_in(name, commands) for name in commands}
                options |= {"prog": named, "description": description}
                call = tyro.extras.subcommand_cli_from_dict(others, args=words, **options)
    except SystemExit as stop:
        if not stop.code:
            text = shown.getvalue().replace(f"{{{','.join(commands)}}}", "COMMAND")
            print(folded(text, shutil.get_terminal_size().columns))
            raise
        raise InputError(f"{_sentence(said.getvalue())}; see {named} --help") from None
    return call


class _Shown(io.StringIO):
    """A text stream that keeps a help text until it is folded.

    It claims the encoding of the stream `destination` and whether that is a terminal, so that the parser
    chooses characters and colors which the terminal can show. A closed output is None.
    """

    encoding: str = ""

    def __init__(self, destination: Any) -> None:
        super().__init__()
        self.encoding = getattr(destination, "encoding", None) or "ascii"
        self._terminal = destination is not None and destination.isatty()

    def isatty(self) -> bool:
        return self._terminal


def folded(text: str, width: int) -> str:
    """Return a help text with long lines outside its boxes broken between words, which tyro does not do.

    An example that takes several lines can still be copied, because each of them except the last ends in a
    backslash.

    Parameters
    ----------
    text : str
        The help text.
    width : int
        Number of columns of the terminal.

    Returns
    -------
    str
        The text, whose lines have at most `width` characters where spaces allow it.
    """
    lines = []
    for line in re.sub(r"\n{3,}", "\n\n", text.rstrip()).splitlines():
        plain = COLORED.sub("", line)
        if len(plain) <= width or any(corner in plain for corner in "│╭╰"):
            lines.append(line)
            continue
        joint, indent = (" \\\n", "    ") if plain.startswith("Example: ") else ("\n", "")
        indent = indent or " " * 7 * plain.startswith("usage: ")
        room = width - len(joint) + 1
        parts = textwrap.wrap(
            plain, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        lines.append(joint.join(parts))
    return "\n".join(lines)


class Commands(MutableMapping[str, Command]):
    """The commands by their names, as a mutable mapping that imports each command on its first use.

    Some commands import PyTorch or Numba, for which the others would have to wait.

    Parameters
    ----------
    homes : mapping of str to str
        Location of each command by its name, as ``"module:function"``.
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._known: dict[str, str | Command] = dict(homes)

    def __getitem__(self, name: str) -> Command:
        found = self._known[name]
        if isinstance(found, str):
            module, _, function = found.partition(":")
            found = self._known[name] = getattr(import_module(module), function)
        return found

    def __setitem__(self, name: str, command: Command) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def documentation(self, name: str) -> str | None:
        """Return the docstring of a command without importing its module.

        Parameters
        ----------
        name : str
            Name of the command.

        Returns
        -------
        str or None
            The docstring, read from the source of the module unless that is already imported; None if the
            command has none.
        """
        found = self._known[name]
        if isinstance(found, str):
            module, _, function = found.partition(":")
            spec = find_spec(module)
            with contextlib.suppress(OSError, SyntaxError):
                tree = ast.parse(Path(spec.origin or "" if spec else "").read_text("utf-8"))
                for one in tree.body:
                    if isinstance(one, ast.FunctionDef) and one.name == function:
                        return ast.get_docstring(one)
        return self[name].__doc__


def in_options(text: str, name: str, command: Command) -> str:
    """Return a message of the library in terms of the options of a command, which users can type.

    The argument that the message begins with, also in "cells of x must be …", arguments with a value
    (``kind="generator"``) and names with an underscore (``step_size``) become options, as far as the command
    has them. Where the library names an option, as in "pass overwrite (--overwrite)", the option alone is
    left. An attribute of the error, which only a script can read, is left out.

    Parameters
    ----------
    text : str
        The message.
    name : str
        Name of the command.
    command : callable
        The command, whose signature is its options.

    Returns
    -------
    str
        The message.
    """
    options = {**_options(command), **SPELLED.get(name, {})}

    def option(found: re.Match[str]) -> str:
        value = (found["value"] or "").strip("\"'")
        spelled = options.get(found["name"])
        return found[0] if spelled is None else f"{spelled} {value}".rstrip().removesuffix(" True")

    text = re.sub(r"; [^;]* in memory \(attribute `\w+` of this error\)$", "", text)
    text = re.sub(r"\b\w+(?: '\w+')? \((--[\w-]+)\)", r"\1", text)
    text = re.sub(r"^(?P<name>\w+)(?P<value>)(?=( of [\w-]+)? (must|needs)\b)", option, text)
    return re.sub(
        r"(?<![\w./'\"=-])(?:(?P<name>\w+)=(?P<value>\"[^\"]*\"|'[^']*'|True)|(?P<other>\w+_\w+)(?![\w./'\"=-]))",
        lambda found: option(found) if found["name"] else options.get(found["other"], found[0]),
        text,
    )


def _options(command: Command) -> dict[str, str]:
    """Return the options of a command by the arguments that they set, those of its dataclasses included."""
    found: dict[str, str] = {}
    hints = get_type_hints(command, include_extras=True)
    for name in signature(command).parameters:
        kind, metadata = hints.get(name), getattr(hints.get(name), "__metadata__", ())
        inner = getattr(kind, "__origin__", kind)
        if is_dataclass(inner):
            found |= {field.name: field.name for field in fields(inner)}
        elif tyro.conf.Positional not in metadata:
            found[name] = name
    return {name: f"--{option.strip('_').replace('_', '-')}" for name, option in found.items()}


def _stand_in(name: str, commands: Mapping[str, Command]) -> Callable[..., Callable[[], int]]:
    """Return a placeholder for the command `name` in the list of all commands.

    It has the first paragraph of the command's docstring, so that the command's module is not imported.
    """
    if not isinstance(commands, Commands):
        return _later(commands[name])

    def command() -> Callable[[], int]:
        return commands[name]

    command.__doc__ = (commands.documentation(name) or "").partition("\n\n")[0]
    return command


def _later(command: Command) -> Callable[..., Callable[[], int]]:
    """Return a function with the signature of a command that returns its call instead of making it."""

    @wraps(command)
    def call(*arguments: Any, **options: Any) -> Callable[[], int]:
        return partial(command, *arguments, **options)

    hints = get_type_hints(command, include_extras=True)
    call.__annotations__ = {name: _spelled_out(hint) for name, hint in hints.items()}
    call.__doc__ = unwrapped(command.__doc__ or "")
    call.__signature__ = signature(command)  # type: ignore[attr-defined]
    del call.__wrapped__  # otherwise tyro would use the docstring and the type hints of the command
    return call


def _spelled_out(hint: Any) -> Any:
    """Return Union[X, None] for X | None, for which tyro imports typeguard, asyncio and a hundred more."""
    if get_origin(hint) is Annotated:
        # Python 3.11.2 would find `hint` in the cache of Annotated[...], as X | None equals Union[X, None].
        return hint.copy_with((_spelled_out(hint.__origin__),))
    return Union[get_args(hint)] if get_origin(hint) is types.UnionType else hint  # noqa: UP007


def _refuse_empty(words: Sequence[str]) -> list[str]:
    """Refuse blank words and zero bytes, because an empty name of a file would mean the current directory."""
    for before, word in zip(["", *words], words, strict=False):
        if not word.strip() or "\0" in word:
            what = before if before.startswith("--") else "an argument"
            raise InputError(f"{what} must not be blank or hold a zero byte, got {word!r}")
    return list(words)


def _today(words: list[str], warn: Callable[[str], None]) -> list[str]:
    """Replace former names of options in a command line by the present ones, and warn about each."""
    renamed = RENAMED.get(words[0], {}) if words else {}
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in renamed:
            warn(f"{name} of {words[0]} is now {renamed[name]}")
            words[place] = f"{renamed[name]}{equals}{value}"
    return words


def _sentence(box: str) -> str:
    """Return the message in the parser's box as one sentence, with the option that was probably meant."""
    lines = [line.strip(" │╭╮╰╯") for line in box.splitlines()]
    title = lines[0].strip(" ─-") if lines else ""
    parts = [""]
    for line in lines[1:]:
        if RULE.fullmatch(line):
            parts.append("")
        else:
            parts[-1] += f" {line}"
    parts = [" ".join(part.split()) for part in parts if part.strip()]
    text = parts[0].partition(" (required)")[0].rstrip(" .") if parts else title
    if text.startswith("Expected"):
        text = f"{title}: {text[0].lower()}{text[1:]}"
    text = re.sub(r"^Error parsing (\S+): ", r"\1: ", text)
    text = re.sub(  # the alternatives of an optional number: None, or a number or several
        r": no type matching (?:\{None\}\|)?(\{\[)?(\w+).*? could be instantiated from \[(.*?)\](?:\. .*|$)",
        lambda found: (
            f" must be {'whole numbers' if found[1] else KINDS.get(found[2], found[2])}, got {found[3]}"
        ),
        text,
    )
    text = re.sub(
        r"^(\S+): (?:invalid literal for (int)\(\) with base 10|could not convert string to (float)): (.*)$",
        lambda found: f"{found[1]} must be {KINDS[(found[2] or found[3]).upper()]}, got {found[4]}",
        text,
    )
    for pattern, better in REWORDED:
        text = re.sub(pattern, better, text)
    said, got, value = text.partition(", got ")
    text = said + got + (value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…")
    advice = next((part for part in parts[1:] if part.startswith("Perhaps you meant:")), "")
    meant = re.search(r"--[a-z-]+", advice)
    return f"{text[:1].lower()}{text[1:]}" + (f"; did you mean {meant[0]}?" if meant else "")
