"""`rapo-gate …`: every command's happy path, and what each refuses without changing anything."""

import getpass
import json
import time
import warnings

import pytest
from served import logged

from rapo_gate import Gate

warnings.filterwarnings("ignore", message="SQLite")


# --- making a gate


def test_init_makes_a_gate_and_prints_each_key_once(rapo, tmp_path):
    db, keys = tmp_path / "new.db", tmp_path / "keys.toml"
    settings = tmp_path / "gate.toml"
    settings.write_text("min_sources = 5\n[params]\nw_H = 4.0\n")
    code, out, err = rapo("init", "--db", db, "--key-file", keys, "--config", settings)
    assert code == 0
    lines = [line.split(" ") for line in out.splitlines()]
    assert [scope for scope, _ in lines] == ["gate", "report", "review", "admin"]
    assert all(key not in keys.read_text() for _, key in lines)
    assert "shadow" in err
    with Gate.open(db, create=False, read_only=True) as gate:
        assert gate.config.min_sources == 5 and gate.config.params.w_H == 4


def test_init_refuses_to_overwrite(rapo, db, tmp_path):
    keys = tmp_path / "keys.toml"
    code, out, err = rapo("init", "--db", db, "--key-file", keys)
    assert (code, out) == (2, "") and "exists" in err and len(err.splitlines()) == 1
    assert not keys.exists()
    keys.write_text("mine")
    code, out, err = rapo("init", "--db", tmp_path / "other.db", "--key-file", keys)
    assert (code, out) == (2, "") and "keys.toml exists" in err
    assert keys.read_text() == "mine" and not (tmp_path / "other.db").exists()


def test_init_that_fails_leaves_no_keys(rapo, tmp_path):
    keys = tmp_path / "keys.toml"
    code, _, err = rapo("init", "--db", tmp_path / "no" / "gate.db", "--key-file", keys)
    assert code == 2 and len(err.splitlines()) == 1
    assert not keys.exists()


@pytest.mark.parametrize("text", ["min_sources = ", "colour = 3", "min_sources = 0", "params = 3"])
def test_init_refuses_bad_settings(rapo, tmp_path, text):
    settings = tmp_path / "gate.toml"
    settings.write_text(text)
    code, _, err = rapo("init", "--db", tmp_path / "gate.db", "--config", settings)
    assert code == 2 and "gate.toml" in err and len(err.splitlines()) == 1
    assert not (tmp_path / "gate.db").exists()


# --- what platforms do


def test_decide_expose_report_and_audit_a_decision(ok, db):
    made = json.loads(
        ok("decide", "--db", db, "--regions", "bad,fine", "--p", ".5,.5", "--request-id", "x",
           "--json")
    )  # fmt: skip
    assert made["psi"][0] < 1 == made["psi"][1] and made["mode"] == "shadow"
    again = ok("decide", "--db", db, "--regions", "bad,fine", "--p", ".5,.5", "--request-id", "x")
    assert made["decision_id"] in again
    assert ok("expose", made["decision_id"], "--db", db, "--shown", "bad") == "noted\n"
    words = ("report", "--db", db, "--source", "zoe", "--key", "k", "--harm", "0.5", "--signal",
             "user-report", "--decision", made["decision_id"])  # fmt: skip
    at = ("--at", str(time.time()))
    assert "1 accepted\n" in ok(*words, *at)
    assert "accepted before" in ok(*words, *at)
    why = json.loads(ok("audit", "decision", made["decision_id"], "--db", db, "--json"))
    (bad,) = why["regions"]
    assert bad["region"] == "bad" and bad["after"] < bad["before"]
    assert {r["source"] for r in bad["because_of"]} <= {"ann", "bob", "eve"}
    assert "because of these reports" in ok("audit", "decision", made["decision_id"], "--db", db)


def test_digits_are_integers_unless_told_otherwise(ok, db, tmp_path):
    ok("decide", "--db", db, "--regions", "7,8", "--p", ".5,.5")
    ok("decide", "--db", db, "--regions", "7,007", "--p", ".5,.5", "--text-ids")
    out = tmp_path / "log.jsonl"
    ok("export", "--db", db, "--out", out)
    made = [json.loads(line) for line in out.read_text().splitlines()]
    assert [e["regions"] for e in made if e["kind"] == "Decision"][-2:] == [[7, 8], ["7", "007"]]


def test_reports_from_files_and_standard_input(ok, rapo, db, tmp_path):
    now = time.time()
    one = {"source": "zoe", "key": "1", "harm": 0.5, "signal": "s", "at": now, "regions": ["bad"]}
    lines = "\n".join(json.dumps({**one, "key": f"{i}"}) for i in range(3))
    (tmp_path / "r.jsonl").write_text(lines)
    assert ok("report", "--db", db, "--file", tmp_path / "r.jsonl") == "3 accepted\n"
    assert ok("report", "--db", db, "--file", "-", stdin=lines) == "3 accepted before\n"
    table = f"source,key,harm,signal,at,regions\nzoe,c,0.5,s,{now},bad;fine\n"
    (tmp_path / "r.csv").write_text(table)
    result = json.loads(ok("report", "--db", db, "--file", tmp_path / "r.csv", "--json"))
    assert result["status"] == "accepted"
    mixed = "\n".join(json.dumps({**one, "key": f"m{h}", "harm": h}) for h in (0.5, 7))
    code, out, err = rapo("report", "--db", db, "--file", "-", stdin=mixed)
    assert code == 1 and out == "1 accepted, 1 refused\n" and "report 2: harm must be" in err


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("r.jsonl", '{"source": 1', "line 1: not JSON"),
        ("r.jsonl", '\n{"source": "a"}', "line 2: a report lacks"),
        ("r.jsonl", "[]", "line 1: a report must be an object"),
        ("r.jsonl", "", "holds no reports"),
        ("r.csv", "source,key,harm,signal,at,regions\na,b,much,s,1,x", "line 2: harm must be"),
        ("r.csv", "source,key,colour\na,b,red", "line 2: a report lacks"),
    ],
)
def test_a_file_with_a_bad_line_reports_nothing(rapo, db, tmp_path, name, text, says):
    before = len(logged(db))
    (tmp_path / name).write_text(text)
    code, out, err = rapo("report", "--db", db, "--file", tmp_path / name)
    assert (code, out) == (2, "") and says in err and len(err.splitlines()) == 1
    assert len(logged(db)) == before


# --- what people do


def test_modes_overrides_and_the_allow_list(ok, db):
    assert "50 %" in ok("mode", "enforce", "--percent", 50, "--db", db, "--reason", "go")
    tried = ok("mode", "shadow", "--db", db, "--dry-run")
    assert "nothing was done" in tried
    assert json.loads(ok("status", "--db", db, "--json"))["mode"] == "enforce"
    dry = ok("override", "bad", "--psi", 0.5, "--db", db, "--dry-run")
    assert "would change 1 region" in dry and "nothing was done" in dry
    assert "Override" not in logged(db)
    ok(
        "override",
        "bad",
        "--psi",
        0.5,
        "--expires",
        "2h",
        "--db",
        db,
        "--reason",
        "look",
        "--by",
        "me",
    )
    about = json.loads(ok("audit", "region", "bad", "--db", db, "--json"))["region"]
    assert about["psi"] == 0.5 and about["override"]["by"] == "me"
    assert about["override"]["expires_at"] == pytest.approx(time.time() + 7200, abs=600)
    ok("override", "bad", "--remove", "--db", db, "--reason", "looked")
    effect = json.loads(ok("allow", "bad", "--db", db, "--reason", "ours", "--json"))
    assert effect["regions"][0]["psi"][1] == 1 and not effect["dry_run"]
    ok("allow", "bad", "--remove", "--db", db, "--reason", "not ours")
    with Gate.open(db, create=False, read_only=True) as gate:
        (done,) = [e.data() for e in gate.events(0, 10**6) if e.kind == "Allow"][-1:]
    assert done["by"] == getpass.getuser() and done["reason"] == "not ours"


def test_rollback_shows_what_changes_then_does_it(ok, db):
    dry = ok("rollback", "--source", "eve", "--db", db, "--dry-run")
    assert "would change 1 region, 40 reports taken out" in dry and "bad" in dry
    assert "Rollback" not in logged(db)
    done = json.loads(ok("rollback", "--source", "eve", "--db", db, "--reason", "lies", "--json"))
    assert done["reports"] == 40 and done["regions"][0]["H"][1] == 0
    assert json.loads(ok("audit", "region", "bad", "--db", db, "--json"))["region"]["H"] == 0
    some = ok("rollback", "--from", "3h", "--to", "1m", "--db", db, "--dry-run")
    assert "80 reports taken out" in some
    reports = json.loads(ok("audit", "region", "bad", "--db", db, "--json"))["reports"]
    report = next(r for r in reports if r["counts"])
    ok("rollback", "--report", report["report_id"], "--db", db, "--reason", "this one")
    ok("verify", "--db", db)


def test_confirm_label_and_configure(ok, db):
    ok("report", "--db", db, "--source", "zoe", "--key", "late", "--harm", 1, "--signal", "s",
       "--at", "30m", "--regions", "fine")  # fmt: skip
    (waits,) = [
        q for q in json.loads(ok("audit", "queue", "--db", db, "--json")) if q["source"] == "zoe"
    ]
    assert waits["waits_for"] == "late"
    assert "zoe" in ok("audit", "queue", "--db", db)
    ok("confirm", "--report", waits["report_id"], "--db", db, "--reason", "I saw it")
    ok("confirm", "--region", "bad", "--db", db, "--reason", "I saw it")
    assert not [
        q for q in json.loads(ok("audit", "queue", "--db", db, "--json")) if q["source"] == "zoe"
    ]
    assert "nothing was done" in ok("label", "bad", "--group", "g0", "--db", db, "--dry-run")
    ok("label", "bad", "--group", "g1", "--topic", "health", "--sensitive", "yes", "--db", db,
       "--reason", "audit")  # fmt: skip
    found = json.loads(ok("audit", "bias", "--db", db, "--json"))
    assert {entry["label"] for entry in found["group"]} == {"g1", "unlabelled"}
    assert "by topic" in ok("audit", "bias", "--db", db)
    ok("configure", "min_sources=5", "params.w_H=4", "--db", db, "--reason", "stricter")
    with Gate.open(db, create=False, read_only=True) as gate:
        assert gate.config.min_sources == 5 and gate.config.params.w_H == 4
