"""`rapo-gate fit`: known answers are found, the later part is not looked at, too little is said."""

import json
import shlex
import shutil
import warnings

import numpy as np
import pytest

from rapo_core.checks import UserError
from rapo_core.params import FieldParams
from rapo_gate.config import GateConfig, SimulatedClock
from rapo_gate.events import plain_event
from rapo_gate.fit import NotEnoughError, base_rate, can_act, draw, fit, lines
from rapo_gate.format import flat
from rapo_gate.gate import Gate
from rapo_gate.log.store import open_store
from rapo_gate.reports import HarmReport
from rapo_gate.retention import compact
from rapo_gate.shadow_log import History, ShadowLog, course

warnings.filterwarnings("ignore", message="SQLite")

RATES = [0.01] * 40 + [0.1] * 3


def made_up(rates, *, per_tick=5.0, ticks=1500, seed=0, sources=500, signals=2):
    """A log of regions with known rates of reports."""
    rng = np.random.default_rng(seed)
    count = rng.poisson(per_tick, (ticks, len(rates)))
    reports = rng.binomial(count, np.asarray(rates)[None])
    tick, region = np.nonzero(count)
    when, where = (np.repeat(x, reports[np.nonzero(reports)]) for x in np.nonzero(reports))
    n = when.size
    return ShadowLog(
        [f"region-{i}" for i in range(len(rates))], (tick, region, count[tick, region] + 0.0),
        (when, where, np.ones(n), rng.integers(0, sources, n), rng.integers(0, signals, n)), 10,
    )  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return fit(made_up(RATES))


def test_three_of_forty_three_regions_are_found(found):
    assert found.scarred == ["region-40", "region-41", "region-42"]
    low, high = found.base_interval
    assert low <= 0.01 <= high and high - low < 0.005
    assert found.acting.able == 3 and found.acting.regions == 43
    # 3 x .1 of all reports are theirs, and 3 of 43 exposures; psi_min lets a tenth through
    assert found.score.held == pytest.approx(0.9 * 0.3 / 0.7, abs=0.06)
    assert found.score.lost == pytest.approx(0.9 * 2.7 / (2.7 + 39.6), abs=0.01)
    assert found.score.lift_interval[0] < found.score.lift < found.score.lift_interval[1]
    assert not found.notes


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("per_tick", [0.5, 20.0])
def test_busy_and_quiet_logs_give_the_same_three(seed, per_tick):
    ticks = 1500 if per_tick > 1 else 4000
    found = fit(made_up(RATES, per_tick=per_tick, ticks=ticks, seed=seed))
    assert found.scarred == ["region-40", "region-41", "region-42"]
    assert found.base_interval[0] <= 0.01 <= found.base_interval[1]


def test_where_all_are_alike_nobody_scars():
    found = fit(made_up([0.01] * 40))
    assert found.scarred == [] and found.score.lost < 0.005
    assert any("no more harm than chance" in note for note in found.notes)
    assert found.acting.able == 0


def test_settings_do_not_depend_on_the_later_part(found):
    log = made_up(RATES)
    other = made_up([0.1] * 3 + [0.01] * 40, seed=5)
    cut = 0.6 * log.seen[0].max()
    later = ShadowLog(
        log.regions,
        tuple(np.concatenate([x[log.seen[0] < cut], y[other.seen[0] >= cut]])
              for x, y in zip(log.seen, other.seen, strict=True)),
        tuple(np.concatenate([x[log.said[0] < cut], y[other.said[0] >= cut]])
              for x, y in zip(log.said, other.said, strict=True)), 10,
    )  # fmt: skip
    again = fit(later)
    assert again.settings == found.settings
    assert again.score.lift != found.score.lift


def test_a_few_bad_regions_do_not_move_the_base_rate():
    rng = np.random.default_rng(0)
    exposures = rng.integers(1, 3000, 500) + 0.0
    rates = np.where(np.arange(500) < 50, 0.2, 0.02)
    reports = rng.poisson(exposures * rates) + 0.0
    assert base_rate(exposures, reports) == pytest.approx(0.02, rel=0.05)
    assert base_rate(exposures, 0.25 * reports, 0.25) == pytest.approx(0.005, rel=0.05)


def test_one_signal_cannot_scar_and_is_told():
    found = fit(made_up(RATES, signals=1))
    assert found.scarred == []
    assert any("1 signals, 2 must agree" in note for note in found.notes)


def test_what_is_missing_is_named():
    log = made_up(RATES, ticks=200)
    nothing = tuple(x[:0] for x in log.seen)
    with pytest.raises(NotEnoughError, match="no exposures"):
        fit(ShadowLog(log.regions, nothing, log.said))
    with pytest.raises(NotEnoughError, match="has 49 reports; at least 50"):
        fit(ShadowLog(log.regions, log.seen, tuple(x[:49] for x in log.said)))
    with pytest.raises(ValueError, match=r"loss must be in \(0, 1\), got 2"):
        fit(log, loss=2)


def test_settings_that_cannot_act_say_so():
    rates = np.full(412, 0.5)
    params = FieldParams(lam=0.1, alpha=0.1, tau=0.1, eta=0.01)
    law = GateConfig(params, base_rate=0.01, scale=0.2)
    assert can_act(law, rates).able == 412
    assert can_act(law, [0.029, 0.031]).able == 1  # 0.01 + 0.2 x 0.1
    for params in (
        FieldParams(lam=0.1, alpha=0.1, tau=1.0), FieldParams(eta=0.0), FieldParams(w_H=0.0),
    ):  # fmt: skip
        idle = can_act(GateConfig(params, base_rate=0.01, scale=0.2), rates)
        assert str(idle).startswith("0 of 412 regions can scar")


def test_it_is_said_and_drawn(found):
    *sentences, call, command = lines(found, 1440.0)
    assert call == found.configure() and str(found.settings) in call
    assert command == found.command()
    assert any("region-41" in line for line in sentences)
    _, axes = draw(found)
    assert axes.get_ylim()[0] == 0 and len(axes.lines) >= 3


def shadowed(path, ticks=120, reported=0.5):
    """A gate in shadow mode: ten creators, one of whom is reported."""
    rng = np.random.default_rng(0)
    clock = SimulatedClock(0.0)
    with Gate.open(path, GateConfig(D=5, D_max=1000), clock=clock) as gate:
        for tick in range(ticks):
            clock.now = (tick + 0.5) * 60
            reports = []
            for i in range(8):
                name = f"{tick}-{i}"
                creators = [f"c{r}" for r in rng.choice(10, 3, replace=False)]
                shown = creators[:1] if i % 2 else creators
                decision = gate.decide(creators, [0.5, 0.3, 0.2], name)
                if i % 2:
                    gate.expose_logged(decision.decision_id, shown)
                if shown[0] == "c7" and rng.random() < reported:
                    how = {"regions": ["c7"]} if i % 4 == 1 else {}
                    how = how or {"decision_id": decision.decision_id}
                    reports.append(HarmReport(
                        f"u{rng.integers(40)}", name, 0.8, ("user", "model")[i % 3 == 0],
                        clock.now, **how,
                    ))  # fmt: skip
            gate.flush()
            gate.report(reports)
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return shadowed(tmp_path_factory.mktemp("fit") / "gate.db")


def test_a_log_is_read_as_the_gate_counts_it(database, tmp_path, rapo):
    with Gate.open(database, read_only=True) as gate:
        log = ShadowLog.of_gate(gate)
        sent = sum(event.kind == "HarmReport" for event in gate.events(0, 10**6))
    assert log.seen[2].sum() == pytest.approx(120 * 8)  # a decision is one exposure
    assert log.delay == 5 and len(log.regions) == 10 and sent > 50
    assert log.said[2].sum() == pytest.approx(0.8 * sent)
    assert rapo("export", "--db", database, "--out", tmp_path / "x")[0] == 0
    again = ShadowLog.of_file(tmp_path / "x")
    assert again.regions == log.regions
    for one, two in zip((*log.seen, *log.said), (*again.seen, *again.said), strict=True):
        np.testing.assert_array_equal(one, two)


class Told:
    """A gate that decides and is told of harm, tick by tick; `log` is what `fit` reads of it."""

    def __init__(self, path):
        self.clock, self.keys = SimulatedClock(60_000.0), 0
        law = GateConfig(LAW.params, D=3, D_max=40, base_rate=0.02, shrinkage=5.0, z=0.5)
        self.gate = Gate.open(path, law, clock=self.clock)
        self.decide(["a", "b"], [0.75, 0.25])

    def decide(self, regions, p):
        return self.gate.decide_logged(regions, p).result().decision_id

    def report(self, ago=0, **about):
        self.keys += 1
        n, at = self.keys, self.clock.now - 60 * ago
        report = HarmReport(f"s{n % 4}", f"k{n}", 0.8, f"g{n % 2}", at, **about)
        return self.gate.report([report])[0].report_id

    def wait(self, ticks=1):
        self.clock.now += 60 * ticks
        self.gate.tick()

    @property
    def log(self):
        self.gate.flush()
        return ShadowLog.of_gate(self.gate)


LAW = GateConfig(FieldParams(lam=0.1, alpha=0.5, tau=0.05, eta=0.05))


def test_each_report_goes_where_it_points(tmp_path):
    told = Told(tmp_path / "gate.db")
    d, e = told.decide(["a", "b"], [0.75, 0.25]), told.decide(["a", "b"], [0.75, 0.25])
    told.gate.expose(e, ["b"])
    for about in ({"decision_id": d}, {"decision_id": e}, {"decision_id": d, "regions": ["b"]},
                  {"regions": ["a"]}):  # fmt: skip
        told.report(**about)
    told.report(regions=["a"], ago=10)  # late: it waits for a reviewer
    log = told.log
    assert log.regions == ["a", "b"] and log.delay == 3
    assert [x.tolist() for x in log.seen] == [[1000, 1000], [0, 1], [1.5, 1.5]]
    tick, region, amount = (x.tolist() for x in log.said[:3])
    assert (tick, region) == ([1000] * 5, [0, 1, 1, 1, 0])
    assert amount == pytest.approx([0.6, 0.2, 0.8, 0.8, 0.8])


def test_rolled_back_reports_are_left_out_and_admitted_ones_are_in(tmp_path):
    told = Told(tmp_path / "gate.db")
    kept, wrong = told.report(regions=["a"]), told.report(regions=["a"])
    told.wait(20)
    late = told.report(regions=["b"], ago=15)
    told.gate.rollback([wrong], reason="a mistake")
    assert told.log.said[0].tolist() == [1000] and kept != wrong
    told.gate.confirm([late], reason="it is so")
    told.wait(2)
    log = told.log
    assert log.said[0].tolist() == [1000, 1005] and log.said[1].tolist() == [0, 1]


def test_a_shadow_log_leads_to_the_fields_of_the_gate(tmp_path):
    """Also where each region has too small a share of a report to agree with anybody."""
    told = Told(tmp_path / "gate.db")
    names = [f"r{i}" for i in range(30)]
    for _ in range(25):
        many, few = told.decide(names, [1 / 30] * 30), told.decide(["a", "b"], [0.5, 0.5])
        for _ in range(6):
            told.report(decision_id=many)
        told.report(decision_id=few)
        told.wait()
    log, fields = told.log, told.gate.fields()
    assert min(f.psi for f in fields.values()) < 0.95 and max(f.H for f in fields.values()) > 0
    history = History.of(len(log.regions), log.seen, log.said, delay=log.delay, cap_source=5.0)
    tick = told.gate.read(lambda state: state.tick)
    n = len(log.regions)
    folded = course(history, told.gate.config, np.arange(n), np.full(n, tick))
    for i, name in enumerate(log.regions):
        for what in ("G", "H", "psi"):
            assert getattr(folded, what)[i] == pytest.approx(getattr(fields[name], what)), name


def test_a_compacted_log_is_fitted_from_there_on(tmp_path):
    told = Told(tmp_path / "gate.db")
    told.report(decision_id=told.decide(["a", "b"], [0.5, 0.5]))
    for _ in range(6):
        told.wait(10)
    told.report(decision_id=told.decide(["a", "b"], [0.5, 0.5]))
    told.gate.close()
    store = open_store(str(tmp_path / "gate.db"))
    compact(store, told.clock.now - 60 * 41, reason="old", clock=told.clock)
    store.close()
    with Gate.open(tmp_path / "gate.db", clock=told.clock) as gate:
        log = ShadowLog.of_gate(gate)
        (tmp_path / "x").write_text("\n".join(json.dumps(plain_event(e)) for e in gate.events()))
    assert log.seen[2].sum() == 1 and log.said[0].tolist() == [1060, 1060]
    with pytest.raises(UserError, match="does not have a log from its first event on"):
        ShadowLog.of_file(tmp_path / "x")


def test_the_command_prints_the_call_and_draws(database, tmp_path, rapo):
    plot = tmp_path / "fit.png"
    code, out, _ = rapo("fit", "--db", database, "--plot", plot)
    assert code == 0 and "gate.configure({" in out and plot.stat().st_size > 10_000
    assert rapo("fit", "--db", database, "--plot", plot)[0] == 2  # the figure is there
    found = json.loads(rapo("fit", "--db", database, "--json")[1])
    assert found["scarred"] == ["c7"] and found["settings"]["params"]["tau"] > 0
    command = next(line for line in out.splitlines() if line.startswith("rapo-gate configure"))
    words = shlex.split(command)[1:]
    path = shutil.copy(database, tmp_path / "other.db")
    assert rapo(*words, "--db", path)[0] == 0
    with Gate.open(path, read_only=True) as gate:
        (change,) = gate.store.read(0, 1, ("ConfigChange",), newest=True)
    logged = flat(change.data()["config"])
    assert flat(found["settings"]).items() <= logged.items()


def test_too_short_a_log_writes_nothing(tmp_path, rapo):
    database = shadowed(tmp_path / "gate.db", ticks=10)
    plot = tmp_path / "fit.png"
    code, _, err = rapo("fit", "--db", database, "--plot", plot)
    assert code == 2 and "at least 50 are needed" in err
    assert not plot.exists()
