"""`rapo-gate …`: what it tells, what it refuses, how it serves, what it forgets."""

import json
import sys
import warnings

import pytest
from served import logged

from rapo_gate import Gate

warnings.filterwarnings("ignore", message="SQLite")


def acts(db):
    """Events that are not the clock's."""
    return [kind for kind in logged(db) if kind not in ("Tick", "Escalation")]


def test_status_reporters_verify_and_export(ok, rapo, db, tmp_path):
    assert "scar mass" in ok("status", "--db", db)
    status = json.loads(ok("status", "--db", db, "--json"))
    assert status["mode"] == "shadow" and status["regions"] == 3 and status["scar_mass"] > 0
    who = json.loads(ok("audit", "reporters", "--db", db, "--json"))
    assert {r["source"] for r in who} == {"ann", "bob", "eve"}
    assert "eve" in ok("audit", "reporters", "--db", db)
    assert "ok" in ok("verify", "--db", db)
    assert json.loads(ok("verify", "--db", db, "--json"))["ok"]
    out = tmp_path / "log.jsonl"
    assert f"wrote {len(logged(db))} events" in ok("export", "--db", db, "--out", out)
    log = [json.loads(line) for line in out.read_text().splitlines()]
    assert [e["position"] for e in log] == list(range(1, len(log) + 1))
    made = next(e for e in log if e["kind"] == "Decision")
    assert made["regions"] == ["bad", "fine", "dull"] and sum(made["served"]) == pytest.approx(1)
    report = next(e for e in log if e["kind"] == "HarmReport")
    assert report["source"] == "ann" and report["exposed_at"] <= report["at"]
    code, _, err = rapo("export", "--db", db, "--out", out)
    assert code == 2 and "exists" in err
    tail = tmp_path / "tail.jsonl"
    ok("export", "--db", db, "--out", tail, "--after", len(log) - 2)
    assert tail.read_text().splitlines() == out.read_text().splitlines()[-2:]


def test_verify_ends_with_1_when_the_fields_differ(rapo, db, monkeypatch):
    monkeypatch.setattr(Gate, "verify", lambda self: {"ok": False, "fields": "a", "replay": "b"})
    code, out, _ = rapo("verify", "--db", db)
    assert code == 1 and "NOT ok" in out


def test_looking_works_beside_a_writer_and_writing_says_who_has_it(ok, rapo, db):
    with Gate.open(db, create=False) as gate:
        gate.decide(["bad"], [1.0])
        gate.flush()
        for words in (("status",), ("verify",), ("audit", "region", "bad"), ("audit", "queue")):
            ok(*words, "--db", db)
        code, out, err = rapo("decide", "--db", db, "--regions", "bad", "--p", "1")
    assert (code, out) == (2, "")
    assert "is being written by process" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("decide", "--regions", "a,b", "--p", ".5,.6"), "p must sum to 1"),
        (("decide", "--regions", "a,b", "--p", "1"), "p must have 2 entries"),
        (("decide", "--regions", "a,b", "--p", "x,y"), "--p must be numbers"),
        (("decide", "--regions", "a,,b", "--p", "1"), "regions must be names"),
        (("decide", "--regions", "a,7", "--p", ".5,.5"), "--text-ids"),
        (("decide", "--regions", "a,b", "--p", "nan,1"), "p must be finite"),
        (("expose", "nothing", "--shown", "bad"), "is of no decision"),
        (("report",), "a report needs --source, --key, --harm, --signal"),
        (("report", "--file", "x.jsonl", "--harm", "1"), "leave out --harm"),
        (("report", "--file", "missing.jsonl"), "missing.jsonl"),
        (("report", "--source", "a", "--key", "b", "--harm", "2", "--signal", "s",
          "--regions", "bad"), "harm must be in"),
        (("report", "--source", "a", "--key", "b", "--harm", "1", "--signal", "s"),
         "names a decision_id, regions, or both"),
        (("report", "--source", "a", "--key", "b", "--harm", "1", "--signal", "s", "--regions",
          "bad", "--at", "noon"), "--at must be Unix seconds"),
        (("report", "--source", "a", "--key", "b", "--harm", "1", "--signal", "s", "--regions",
          "bad", "--at", "nan"), "--at must be finite"),
        (("report", "--source", "a", "--key", "b", "--harm", "1", "--signal", "s", "--regions",
          "bad", "--at", "2001-01-01"), "D_max allows"),
        (("mode", "enforce"), "--reason is needed"),
        (("mode", "dance", "--reason", "x"), "mode must be 'shadow' or 'enforce'"),
        (("mode", "enforce", "--percent", "101", "--reason", "x"), "percent must be in"),
        (("override", "bad", "--psi", "0.5"), "--reason is needed"),
        (("override", "bad", "--reason", "x"), "give --psi, or --remove"),
        (("override", "bad", "--psi", "7", "--reason", "x"), "psi must be in"),
        (("override", "bad", "--psi", "1", "--expires", "100", "--reason", "x"), "in the future"),
        (("override", "nobody", "--psi", "1", "--reason", "x"), "is not known"),
        (("override", "bad", "--remove", "--reason", "x"), "no override to take back"),
        (("allow", "nobody", "--reason", "x"), "is not known"),
        (("allow", "bad", "--remove", "--reason", "x"), "not on the allow-list"),
        (("confirm", "--reason", "x"), "names reports or regions"),
        (("confirm", "--report", "99999", "--reason", "x"), "no report 99999"),
        (("rollback", "--reason", "x"), "names reports, a source or a time range"),
        (("rollback", "--source", "nobody", "--reason", "x"), "nothing was reported"),
        (("rollback", "--report", "1", "--source", "ann", "--reason", "x"), "not both"),
        (("rollback", "--from", "1m", "--to", "1h", "--reason", "x"), "start < end"),
        (("label", "bad", "--reason", "x"), "a label needs"),
        (("label", "bad", "--sensitive", "maybe", "--reason", "x"), "'yes' or 'no'"),
        (("configure", "tau", "--reason", "x"), "settings are NAME=VALUE"),
        (("configure", "D=7", "--reason", "x"), "D cannot change"),
        (("configure", "colour=7", "--reason", "x"), "unknown settings"),
        (("audit", "region", "nobody"), "is not known"),
        (("audit", "decision", "nobody"), "is of no decision"),
        (("export", "--out", "no/such/folder.jsonl"), "folder.jsonl"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_changes_nothing(rapo, db, words, says):
    before = acts(db)
    code, out, err = rapo(*words, "--db", db)
    assert (code, out) == (2, ""), err
    assert says in err and len(err.splitlines()) == 1
    assert acts(db) == before


@pytest.mark.parametrize("words", [("status",), ("decide", "--regions", "a", "--p", "1")])
def test_a_missing_gate_is_not_made(rapo, tmp_path, words):
    code, _, err = rapo(*words, "--db", tmp_path / "none.db")
    assert code == 2 and "there is no gate at" in err and len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())
    (tmp_path / "text.db").write_text("not a database, but long enough to look at as one")
    code, _, err = rapo(*words, "--db", tmp_path / "text.db")
    assert code == 2 and "is not a gate" in err and len(err.splitlines()) == 1
    code, _, err = rapo(*words, "--db", "mysql://here")
    assert code == 2 and "postgresql://" in err


def test_words_that_are_no_command(rapo, ok):
    assert rapo("dance")[0] == 2
    assert "init" in ok() and "region" in ok("audit") and "--psi" in ok("override", "--help")
    code, _, err = rapo("status")
    assert code == 2 and "--db" in err and len(err.splitlines()) == 1


def test_serving_without_the_extra_says_what_to_install(rapo, db, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapo_gate.service.serve", None)
    code, _, err = rapo("serve", "--db", db, "--key-file", "keys.toml")
    assert code == 2 and "pip install rapo-gate" in err and len(err.splitlines()) == 1


def test_serve_hands_over_what_it_was_given(ok, db, monkeypatch):
    asked = []
    from rapo_gate.service import serve

    monkeypatch.setattr(serve, "serve", lambda *words, **more: asked.append((*words, more)))
    ok("serve", "--db", db, "--key-file", "keys.toml", "--port", 9000, "--metrics-need-key",
       "--trust-proxy", "10.0.0.1", "--trust-proxy", "10.0.0.2")  # fmt: skip
    ((address, keys, host, port, more),) = asked
    assert (address, str(keys), host, port) == (str(db), "keys.toml", "127.0.0.1", 9000)
    assert more["metrics_need_key"] and list(more["trust_proxy"]) == ["10.0.0.1", "10.0.0.2"]


# What the log keeps


def test_a_reporter_is_erased_and_the_fields_stay(db, ok, rapo):
    before = json.loads(ok("verify", "--db", db, "--json"))["fields"]
    code, _, err = rapo("erase", "--db", db, "--source", "nobody", "--reason", "asked")
    assert code == 2 and "nobody" in err
    words = ("erase", "--db", db, "--source", "ann", "--reason", "asked", "--json")
    done = json.loads(ok(*words))
    assert done["events"] > 0 and done["fields"] == before
    assert json.loads(ok("verify", "--db", db, "--json"))["fields"] == before
    names = {r["source"] for r in json.loads(ok("audit", "reporters", "--db", db, "--json"))}
    assert done["pseudonym"] in names and "ann" not in names


def test_only_what_cannot_be_reported_any_more_is_dropped(db, rapo):
    words = ("compact", "--db", db, "--reason", "old")
    code, _, err = rapo(*words, "--before", "1m")
    assert code == 2 and "D_max" in err
    code, _, err = rapo(*words, "--before", "900d")
    assert code == 2 and "nothing is left to drop" in err


def test_settings_that_cannot_act_are_told(db, ok):
    assert "1 of 3 regions can scar" in ok("status", "--db", db)
    ok("configure", "--db", db, "params.tau=2.0", "--reason", "too high")
    assert "0 of 3 regions can scar" in ok("status", "--db", db)
