"""Kinds of field that a human action has.

A field is declared once, with the action that it belongs to. From this object follow the field's
place in a request body and its schema, its options on the command line, and its inputs in a form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictBool, StringConstraints
from pydantic import Field as Bounded

from rapo_core.checks import UserError
from rapo_gate.events import LONGEST_ID, Region
from rapo_gate.format import changes_of, real_of, region_of, time_of

Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=LONGEST_ID)]
Id = Annotated[int, Bounded(strict=True, ge=-(2**63), le=2**63 - 1)]
RegionName = Text | Id
Number = Annotated[float, Bounded(strict=True, allow_inf_nan=False)]
ReportId = Annotated[int, Bounded(strict=True, ge=1, le=2**63 - 1)]
Link = Annotated[str, StringConstraints(pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://.", max_length=1000)]

REQUIRED = Parameter.empty

EXPIRIES = {
    "3600": "1 hour",
    "86400": "1 day",
    "604800": "7 days",
    "2592000": "30 days",
    "": "never",
}
"""Seconds after which something ends, as a form sends them, and how the form shows them."""


class Option(NamedTuple):
    """A word on the command line."""

    name: str
    type: Any
    about: str
    flag: str = ""
    """Name of the option such as `--psi`; none for an argument."""
    metavar: str = ""
    """How help shows an argument."""
    default: Any = REQUIRED


class Input(NamedTuple):
    """An input of a form."""

    name: str
    label: str
    type: str = "text"
    """Type of the `<input>`; or `select`, `textarea`."""
    value: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    low: float | None = None
    high: float | None = None
    required: bool = False


class FormData(dict[str, list[str]]):
    """The values that a form, or the query of an address, sent under each name."""

    def one(self, name: str, default: str = "") -> str:
        """The first value of a name, without the spaces around it."""
        return self.get(name, [default])[0].strip()

    def exact(self, name: str) -> str:
        """The first value of a name as it is: a region's name may begin with a space."""
        return self.get(name, [""])[0]

    def names_region(self) -> bool:
        """Whether `name` or `number` says a region."""
        return bool(self.one("number") or self.exact("name"))

    def region(self) -> Region:
        """The region that `name` (a string) or `number` (an integer) says.

        Raises:
            UserError: neither says one.
        """
        digits, name = self.one("number"), self.exact("name")
        if digits or ("number" in self and not name):
            if not re.fullmatch(r"-?\d{1,19}", digits):
                raise UserError(f"a region's number must be a whole number, got {digits!r:.60}")
            return int(digits)
        if not name:
            raise UserError("no region was named")
        return name


@dataclass(frozen=True)
class ActionField:
    """A field of an action. The methods read and describe it for one interface each."""

    about: str
    option: str = ""
    """The field's option on the command line, if that is not `--name`."""
    name: str = field(default="", kw_only=True)
    default: Any = field(default=REQUIRED, kw_only=True)
    """REQUIRED if the field has to be given."""

    subject: ClassVar[str] = ""
    """`region`, `reports` or `source`, if the field makes the action be about one: the page of
    that subject has the action's form, without this field."""

    body_type: ClassVar[Any] = None
    """The field's type in a request body, as pydantic understands it."""
    option_type: ClassVar[Any] = str | None
    """The field's type on the command line."""
    option_default: ClassVar[Any] = None
    metavar: ClassVar[str] = ""
    """How help shows the field, if it is an argument and not an option."""

    @property
    def flag(self) -> str:
        """The field's option on the command line."""
        return self.option or f"--{self.name.replace('_', '-')}"

    @property
    def label(self) -> str:
        """The field's name for people."""
        return self.name.replace("_", " ").capitalize().replace("Psi", "ψ")

    def body(self) -> Any:
        """The field's type in a request body; it may depend on the field's bounds."""
        return self.body_type

    def options(self) -> list[Option]:
        """The words on the command line that the field is made of."""
        if self.metavar:
            return [Option(self.name, self.option_type, self.about, metavar=self.metavar)]
        default = self.option_default
        return [Option(self.name, self.option_type, self.about, self.flag, default=default)]

    def from_options(self, values: Mapping[str, Any]) -> Any:
        """The field's value from the values of its options, and of `text_ids`."""
        return values[self.name]

    def inputs(self) -> list[Input]:
        """The form inputs that the field is made of."""
        return [Input(self.name, self.label)]

    def inputs_beside(self) -> list[Input]:
        """The inputs that remain on a page which itself says what the action is about."""
        return [] if self.subject else self.inputs()

    def from_form(self, form: FormData, now: float) -> Any:
        """The field's value from a form; `now` is Unix seconds."""
        return form.exact(self.name) or None


_REGION_INPUTS = [Input("name", "Region"), Input("number", "or its number")]


@dataclass(frozen=True)
class RegionField(ActionField):
    """One region."""

    subject = "region"
    body_type = RegionName
    option_type: ClassVar[Any] = str
    metavar = "REGION"

    def from_options(self, values: Mapping[str, Any]) -> Region:
        """An integer if the word is written as one, unless `text_ids`."""
        return region_of(values[self.name], values["text_ids"])

    def inputs(self) -> list[Input]:
        """The region's name, or its number."""
        return list(_REGION_INPUTS)

    def from_form(self, form: FormData, now: float) -> Region:
        """The region that the form names."""
        return form.region()


@dataclass(frozen=True)
class RegionsField(RegionField):
    """Any number of regions; a form can name one."""

    body_type = list[RegionName]
    option_type, metavar = list[str] | None, ""

    def from_options(self, values: Mapping[str, Any]) -> Any:
        """Integers where words are written as such, unless `text_ids`."""
        return [region_of(word, values["text_ids"]) for word in values[self.name] or []] or None

    def from_form(self, form: FormData, now: float) -> Any:
        """The region that the form names, unless it names reports."""
        return [form.region()] if form.names_region() and "reports" not in form else None


@dataclass(frozen=True)
class ReportsField(ActionField):
    """Ids of reports."""

    subject = "reports"
    body_type = Annotated[list[ReportId], Bounded(min_length=1)]
    option_type = list[int] | None

    def from_options(self, values: Mapping[str, Any]) -> Any:
        """The ids; None if there are none."""
        return values[self.name] or None

    def inputs(self) -> list[Input]:
        """The ids in one line."""
        return [Input(self.name, "Report ids, with spaces between")]

    def from_form(self, form: FormData, now: float) -> list[int] | None:
        """The ids of all boxes that were ticked, or of the line."""
        ids = [word for text in form.get(self.name, []) for word in text.split()]
        if not all(i.isascii() and i.isdecimal() and len(i) < 19 for i in ids):
            raise UserError(f"report ids must be whole numbers, got {ids!r:.80}")
        return sorted({int(i) for i in ids}) or None


@dataclass(frozen=True)
class SourceField(ActionField):
    """Who reported."""

    subject = "source"
    body_type = Text


@dataclass(frozen=True)
class NumberField(ActionField):
    """A number from `low` to `high`."""

    low: float = field(kw_only=True)
    high: float = field(kw_only=True)
    removable: bool = field(default=False, kw_only=True)
    """None is a value too: it takes back what was set before."""

    def body(self) -> Any:
        """A number within the bounds."""
        number = Annotated[Number, Bounded(ge=self.low, le=self.high)]
        return number | None if self.removable else number

    def options(self) -> list[Option]:
        """A number; and `--remove`, if None is a value."""
        if not self.removable:
            return [Option(self.name, float, self.about, self.flag, default=self.default)]
        return [
            Option(self.name, float | None, self.about, self.flag, default=None),
            Option("remove", bool, f"Take {self.name} back.", "--remove", default=False),
        ]

    def from_options(self, values: Mapping[str, Any]) -> Any:
        """The number; None for `--remove`."""
        if self.removable and values["remove"] == (values[self.name] is not None):
            raise UserError(f"give {self.flag}, or --remove to take one back")
        return values[self.name]

    def inputs(self) -> list[Input]:
        """A number, with its bounds."""
        value = "1" if self.default is REQUIRED else f"{self.default:g}"
        return [
            Input(self.name, self.label, "number", value, (), self.low, self.high, required=True)
        ]

    def from_form(self, form: FormData, now: float) -> float | None:
        """The number; what the action takes without it if the form does not have the input."""
        if self.name in form:
            return real_of(self.name, form.one(self.name))
        return None if self.removable else self.default


@dataclass(frozen=True)
class SinceField(ActionField):
    """A moment, usually in the past."""

    body_type = Number

    def from_options(self, values: Mapping[str, Any]) -> float | None:
        """Unix seconds, an ISO 8601 time, or a span that counts back from now."""
        return time_of(self.flag, values[self.name])

    def inputs(self) -> list[Input]:
        """A date and a time."""
        return [Input(self.name, f"{self.label}, UTC", "datetime-local")]

    def from_form(self, form: FormData, now: float) -> float | None:
        """The date and time, in UTC."""
        return time_of(self.name, form.one(self.name) or None)


@dataclass(frozen=True)
class EndField(ActionField):
    """A moment to come at which something ends; None is never."""

    body_type = Number

    def from_options(self, values: Mapping[str, Any]) -> float | None:
        """Unix seconds, an ISO 8601 time, or a span that counts from now."""
        return time_of(self.flag, values[self.name], ahead=True)

    def inputs(self) -> list[Input]:
        """One of some lengths of time."""
        return [Input(self.name, "Ends after", "select", "604800", tuple(EXPIRIES.items()))]

    def from_form(self, form: FormData, now: float) -> float | None:
        """The end of the length of time that was chosen."""
        seconds = form.one(self.name)
        if seconds not in EXPIRIES:
            names = list(EXPIRIES.values())
            raise UserError(f"{self.name} must be one of {names}, got {seconds!r:.40}")
        return now + float(seconds) if seconds else None


@dataclass(frozen=True)
class FlagField(ActionField):
    """True or false."""

    body_type = StrictBool
    option_type, option_default = bool, False

    def inputs(self) -> list[Input]:
        """A box to tick."""
        return [Input(self.name, self.about.rstrip("."), "checkbox", "yes")]

    def from_form(self, form: FormData, now: float) -> bool:
        """Whether the box was ticked."""
        return form.one(self.name) == "yes"


@dataclass(frozen=True)
class ChoiceField(ActionField):
    """One of some words."""

    choices: tuple[str, ...] = field(kw_only=True)

    def body(self) -> Any:
        """One of the words."""
        return Literal[self.choices]

    def options(self) -> list[Option]:
        """An argument."""
        return [Option(self.name, str, self.about, metavar="|".join(self.choices))]

    def inputs(self) -> list[Input]:
        """A list to choose from."""
        choices = tuple((choice, choice.capitalize()) for choice in self.choices)
        return [Input(self.name, self.label, "select", self.choices[0], choices)]

    def from_form(self, form: FormData, now: float) -> str:
        """The choice."""
        return form.one(self.name)


@dataclass(frozen=True)
class SettingsField(ActionField):
    """Settings and their new values."""

    body_type = Annotated[dict[str, Any], Bounded(min_length=1)]
    option_type, metavar = list[str], "NAME=VALUE..."

    def from_options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values as in a settings file."""
        return changes_of(values[self.name])

    def inputs(self) -> list[Input]:
        """A text of several lines."""
        return [Input(self.name, "One NAME=VALUE a line, as min_sources=5", "textarea")]

    def from_form(self, form: FormData, now: float) -> dict[str, Any]:
        """Values as in a settings file, one a line."""
        lines = form.one(self.name).splitlines()
        return changes_of([line.strip() for line in lines if line.strip()])


class LabelItem(BaseModel):
    """A region and what its label says of it."""

    model_config = ConfigDict(extra="forbid")
    region: RegionName
    group: Text | None = None
    topic: Text | None = None
    sensitive: Literal["yes", "no"] | None = None
    title: Text | None = None
    url: Link | None = None


LABELS = {
    "group": "Whose it is.",
    "topic": "What it is about.",
    "sensitive": "yes or no: counts for the outcome metrics.",
    "title": "Its name for people.",
    "url": "Where people can look at it; http or https.",
}
"""What a label may say of a region."""


def _by_region(items: list[LabelItem]) -> dict[Region, dict[str, str]]:
    labels: dict[Region, dict[str, str]] = {}
    for item in items:
        if item.region in labels:
            raise UserError(f"region {item.region!r} is labelled twice")
        labels[item.region] = item.model_dump(exclude={"region"}, exclude_none=True)
    return labels


@dataclass(frozen=True)
class LabelsField(ActionField):
    """Regions and their labels; a form and a command label one region."""

    subject = "region"
    body_type = Annotated[list[LabelItem], Bounded(min_length=1), AfterValidator(_by_region)]

    def options(self) -> list[Option]:
        """The region, and an option for each part of a label."""
        parts = [Option(p, str | None, about, f"--{p}", "", None) for p, about in LABELS.items()]
        return [Option("region", str, "A region.", metavar="REGION"), *parts]

    def from_options(self, values: Mapping[str, Any]) -> dict[Region, dict[str, str]]:
        """The label of the region."""
        label = {part: values[part] for part in LABELS if values[part] is not None}
        if not label:
            raise UserError(f"a label needs one of --{', --'.join(LABELS)}")
        return {region_of(values["region"], values["text_ids"]): label}

    def inputs(self) -> list[Input]:
        """The region, and an input for each part of a label."""
        return [*_REGION_INPUTS, *self.inputs_beside()]

    def inputs_beside(self) -> list[Input]:
        """An input for each part of a label."""
        sensitive = (("", "not said"), ("yes", "yes"), ("no", "no"))
        return [
            Input("group", "Group"),
            Input("topic", "Topic"),
            Input("sensitive", "Sensitive", "select", "", sensitive),
            Input("title", "Title"),
            Input("url", "Link", "url"),
        ]

    def from_form(self, form: FormData, now: float) -> dict[Region, dict[str, str]]:
        """The label of the region that the form names."""
        return {form.region(): {part: form.one(part) for part in LABELS if form.one(part)}}
