"""Keys: made once, kept hashed, compared whole."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from rapo_gate.service.auth import SCOPES, Keys, new_keys, write_key_file


def test_a_key_per_scope_opens_its_scope_and_admin_everything(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    plain = write_key_file(path)
    keys = Keys.load(path)
    assert list(plain) == list(SCOPES)
    for scope in ("gate", "report", "review"):
        caller = keys.caller(plain[scope])
        assert caller is not None and caller.scopes == {scope} and caller.name == scope
    admin = keys.caller(plain["admin"])
    assert admin is not None and admin.scopes == set(SCOPES)


def test_the_file_holds_hashes_only_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    plain = write_key_file(path)
    text = path.read_text()
    for key in plain.values():
        assert key not in text
        assert sha256(key.encode()).hexdigest() in text
    assert path.stat().st_mode & 0o777 == 0o600


def test_keys_are_long_and_never_the_same() -> None:
    one, other = new_keys(), new_keys()
    assert len({*one.values(), *other.values()}) == 8
    assert all(len(key) >= 43 for key in one.values())  # 256 bits in base64


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    write_key_file(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="may be in use"):
        write_key_file(path)
    assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError, match="no folder"):
        write_key_file(tmp_path / "missing" / "keys.toml")


@pytest.mark.parametrize("key", ["", "wrong", "x" * 10_000, "\ud800", "clé"])
def test_an_unknown_key_opens_nothing(key: str) -> None:
    assert Keys.of(new_keys()).caller(key) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must hold"),
        ("key = 3", "must hold"),
        ("[[key]]\nscope='gate'\nsha256='HASH'\n[other]\n", "must hold"),
        ("not toml at all", "is not a key file"),
        ("[[key]]\nsha256='HASH'", "needs scope"),
        ("[[key]]\nscope='root'\nsha256='HASH'", "scopes are of"),
        ("[[key]]\nscopes=[]\nsha256='HASH'", "scopes are of"),
        ("[[key]]\nscope='gate'\nsha256='zz'", "64 hexadecimal digits"),
        ("[[key]]\nscope='gate'\nsha256='ab'", "64 hexadecimal digits"),
        ("[[key]]\nscope='gate'\nsha256='HASH'\nsecret='x'", "it may have"),
        ("[[key]]\nscope='report'\nsha256='HASH'\nsources=[]", "list of beginnings"),
        ("[[key]]\nscope='report'\nsha256='HASH'\nsources=['']", "a source must be"),
        ("[[key]]\nscope='gate'\nsha256='HASH'\nname=\"a\\u0007b\"", "name must be printable"),
        ("[[key]]\nscope='gate'\nsha256='HASH'\n" * 2, "number 2: its sha256 occurs twice"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text.replace("HASH", "ab" * 32))
    with pytest.raises(ValueError, match=words):
        Keys.load(path)


def test_a_missing_file_says_who_writes_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="rapo-gate init"):
        Keys.load(tmp_path / "keys.toml")


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    write_key_file(path)
    path.chmod(0o666)
    with pytest.raises(PermissionError, match="chmod 600"):
        Keys.load(path)


def test_several_scopes_names_and_sources(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    digest = sha256(b"k").hexdigest().upper()
    path.write_text(
        f'[[key]]\nscopes = ["gate", "report"]\nsha256 = "{digest}"\nsources = ["app-", "web"]\n'
    )
    caller = Keys.load(path).caller("k")
    assert caller is not None
    assert caller.scopes == {"gate", "report"}
    assert caller.name == f"gate-report-{digest[:8].lower()}"
    assert caller.may_report_as("app-1") and caller.may_report_as("web")
    assert not caller.may_report_as("partner") and not caller.may_report_as(3)
