"""What still has to run, in which order."""

from dataclasses import dataclass

from rapo.jobs.job import unfinished


@dataclass
class Made:
    key: str
    needs: tuple = ()
    ready: bool = False
    seconds: float = 0.0
    done = lambda self, root: self.ready  # noqa: E731


def keys(jobs, root):
    return [job.key for job in unfinished(jobs, root)]


def test_what_is_needed_comes_once_and_before_all_that_need_it(tmp_path):
    ge, rapo = Made("GE"), Made("RAPO")
    shields = [Made("shield 1", (ge, rapo)), Made("shield 2", (ge, rapo))]
    assert keys([*shields, rapo], tmp_path) == ["RAPO", "GE", "shield 1", "shield 2"]
    ge.ready = True
    assert keys(shields, tmp_path) == ["RAPO", "shield 1", "shield 2"]


def test_a_finished_job_needs_nothing(tmp_path):
    missing = Made("GE")
    assert keys([Made("shield", (missing,), ready=True)], tmp_path) == []
