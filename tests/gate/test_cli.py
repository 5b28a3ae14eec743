"""`rapo gate …`: every command's happy path, and what each refuses without changing anything."""

import getpass
import io
import json
import shutil
import sys
import time
import warnings
from pathlib import Path

import pytest

from rapo.cli import main
from rapo.gate import Gate, GateConfig, HarmReport
from rapo.gate.config import SimulatedClock

warnings.filterwarnings("ignore", message="SQLite")


@pytest.fixture
def rapo(monkeypatch, capsys):
    """Run `rapo gate …` here: (exit code, stdout, stderr)."""

    def run(*words, stdin=""):
        monkeypatch.setattr(sys, "argv", ["rapo", "gate", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


@pytest.fixture
def ok(rapo):
    """Run a command that must succeed; its output."""

    def run(*words, **options):
        code, out, err = rapo(*words, **options)
        assert code == 0, err
        return out

    return run


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A gate with three known regions whose `bad` one is scarred."""
    path = tmp_path_factory.mktemp("template") / "gate.db"
    now = time.time()
    clock = SimulatedClock(now - 3600)
    config = GateConfig(D=5, shrinkage=1.0, z=0.0)
    signals = {"ann": "user-report", "bob": "user-report", "eve": "classifier"}
    with Gate.open(path, config, clock=clock) as gate:
        for tick in range(40):
            clock.now = now - 3600 + 60 * tick
            gate.decide(["bad", "fine", "dull"], [0.4, 0.3, 0.3])
            gate.report(
                HarmReport(source, f"{tick}", 1.0, signal, clock.now, regions=["bad"])
                for source, signal in signals.items()
            )
        clock.now = now - 60
        gate.tick()
        assert gate.fields()["bad"].H > 0
    return path


@pytest.fixture
def db(template, tmp_path):
    """A gate to do things to."""
    return shutil.copy(template, tmp_path / "gate.db")


def events(db):
    with Gate.open(db, create=False, read_only=True) as gate:
        return len(gate.events(0, 10**6))


def acts(db):
    """Events that are not the clock's."""
    with Gate.open(db, create=False, read_only=True) as gate:
        return [e.kind for e in gate.events(0, 10**6) if e.kind not in ("Tick", "Escalation")]


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
    before = events(db)
    (tmp_path / name).write_text(text)
    code, out, err = rapo("report", "--db", db, "--file", tmp_path / name)
    assert (code, out) == (2, "") and says in err and len(err.splitlines()) == 1
    assert events(db) == before


# --- what people do


def test_modes_overrides_and_the_allow_list(ok, db):
    assert "50 %" in ok("mode", "enforce", "--percent", 50, "--db", db, "--reason", "go")
    tried = ok("mode", "shadow", "--db", db, "--dry-run")
    assert "nothing was done" in tried
    assert json.loads(ok("status", "--db", db, "--json"))["mode"] == "enforce"
    dry = ok("override", "bad", "--psi", 0.5, "--db", db, "--dry-run")
    assert "would change 1 region" in dry and "nothing was done" in dry
    assert "Override" not in acts(db)
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
    assert "Rollback" not in acts(db)
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


# --- what it tells


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
    assert f"wrote {events(db)} events" in ok("export", "--db", db, "--out", out)
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
        (("override", "bad", "--reason", "x"), "takes --psi, or --remove"),
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
    monkeypatch.setitem(sys.modules, "rapo.gate.service.serve", None)
    code, _, err = rapo("serve", "--db", db, "--key-file", "keys.toml")
    assert code == 2 and "rapo-rl[gate]" in err and len(err.splitlines()) == 1


def test_serve_hands_over_what_it_was_given(ok, db, monkeypatch):
    asked = []
    from rapo.gate.service import serve

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


def test_a_log_of_the_first_format_is_copied(tmp_path, ok, rapo):
    old = shutil.copy(Path(__file__).parent / "data" / "first_format.db", tmp_path / "old.db")
    code, _, err = rapo("status", "--db", old)
    assert code == 2 and "rapo gate migrate" in err
    settings = tmp_path / "new.toml"
    settings.write_text("base_rate = 0.02\n")
    new = tmp_path / "new.db"
    words = ("migrate", "--db", old, "--out", new, "--config", settings, "--json")
    assert json.loads(ok(*words))["events"] == 122
    assert rapo(*words)[0] == 2  # it is there now
    with Gate.open(new, read_only=True) as gate:
        assert gate.config.base_rate == 0.02


def test_settings_that_cannot_act_are_told(db, ok):
    assert "1 of 3 regions can scar" in ok("status", "--db", db)
    ok("configure", "--db", db, "params.tau=2.0", "--reason", "too high")
    assert "0 of 3 regions can scar" in ok("status", "--db", db)
