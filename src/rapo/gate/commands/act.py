"""A command for every action that is declared: its fields are its options."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, cleandoc
from typing import Annotated, Any

import typer

from rapo.gate import tables
from rapo.gate.commands import By, Db, DryRun, Json, Reason, TextIds, opened
from rapo.gate.declare import LABELS, Action, Kind, Spec
from rapo.gate.words import changes_of, login, region_of, time_of

Values = dict[str, Any]
_NAME = Annotated[str, typer.Argument(metavar="REGION", help="A region; 12 is an integer.")]


def command_of(action: type[Action]) -> Callable[..., None]:
    """The function behind `rapo gate NAME`, with a signature that typer reads."""
    specs = action.specs()
    parameters = {p.name: p for spec in specs for p in _parameters(spec)}
    for name, kind, default in (
        ("db", Db, Parameter.empty), ("reason", Reason, ""), ("by", By, ""),
        ("dry_run", DryRun, False), ("text_ids", TextIds, False), ("as_json", Json, False),
    ):  # fmt: skip
        parameters[name] = _parameter(name, kind, default)

    def command(**words: Any) -> None:
        if not words["reason"].strip() and not words["dry_run"]:
            raise ValueError("--reason is needed: it goes into the log with what you do")
        values = {spec.name: _value(spec, words) for spec in specs}
        who = words["by"] or login()
        wanted = action(**values, reason=words["reason"], by=who, dry_run=words["dry_run"])
        with opened(words["db"], write=True) as gate:
            effect = gate.act(wanted)
        if words["as_json"]:
            tables.print_json(tables.effect_values(effect))
            return
        typer.echo(f"{wanted.title()}: {tables.effect_words(effect)}")
        if effect.regions:
            tables.show(tables.effect_table(effect))
        typer.echo("a dry run: nothing was done" if effect.dry_run else f"event {effect.event}")

    command.__name__ = action.name
    command.__doc__ = cleandoc(action.__doc__ or "").partition("\n\n")[0]
    command.__signature__ = Signature(list(parameters.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {name: p.annotation for name, p in parameters.items()}
    return command


def _parameter(name: str, kind: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _parameters(spec: Spec) -> list[Parameter]:
    """The words on the command line that a field is made of."""
    about, name = spec.given.about, spec.name
    option: Any = typer.Option(spec.given.option or f"--{name.replace('_', '-')}", help=about)
    match spec.given.kind:
        case Kind.REGION:
            return [_parameter(name, _NAME)]
        case Kind.REGIONS:
            return [_parameter(name, Annotated[list[str] | None, option], None)]
        case Kind.REPORTS:
            return [_parameter(name, Annotated[list[int] | None, option], None)]
        case Kind.WORD | Kind.SINCE | Kind.UNTIL:
            return [_parameter(name, Annotated[str | None, option], None)]
        case Kind.REAL if spec.needed and spec.nullable:  # a value, or a word for none
            remove: Any = typer.Option("--remove", help=f"Take {name} back.")
            return [
                _parameter(name, Annotated[float | None, option], None),
                _parameter("remove", Annotated[bool, remove], False),
            ]
        case Kind.REAL:
            return [_parameter(name, Annotated[float, option], spec.default)]
        case Kind.FLAG:
            return [_parameter(name, Annotated[bool, option], False)]
        case Kind.CHOICE:
            words: Any = typer.Argument(metavar="|".join(spec.given.choices), help=about)
            return [_parameter(name, Annotated[str, words])]
        case Kind.SETTINGS:
            pairs: Any = typer.Argument(metavar="NAME=VALUE...", help=about)
            return [_parameter(name, Annotated[list[str], pairs])]
        case Kind.LABELS:
            said = [
                _parameter(part, Annotated[str | None, typer.Option(help=words)], None)
                for part, words in LABELS.items()
            ]
            return [_parameter("region", _NAME), *said]


def _value(spec: Spec, words: Values) -> Any:
    """The value of a field, from the words that were given."""
    word, option = words.get(spec.name), spec.given.option or f"--{spec.name}"
    match spec.given.kind:
        case Kind.REGION:
            return region_of(str(word), words["text_ids"])
        case Kind.REGIONS:
            return [region_of(w, words["text_ids"]) for w in word or []] or None
        case Kind.REPORTS:
            return word or None
        case Kind.SINCE:
            return time_of(option, word)
        case Kind.UNTIL:
            return time_of(option, word, ahead=True)
        case Kind.REAL if spec.needed and spec.nullable:
            if words["remove"] == (word is not None):
                raise ValueError(f"it takes {option}, or --remove to take one back")
        case Kind.SETTINGS:
            return changes_of(word or [])
        case Kind.LABELS:
            said = {part: words[part] for part in LABELS if words[part] is not None}
            if not said:
                raise ValueError(f"a label needs one of --{', --'.join(LABELS)}")
            return {region_of(words["region"], words["text_ids"]): said}
    return word
