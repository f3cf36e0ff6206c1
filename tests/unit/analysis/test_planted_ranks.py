"""What ranks that wait for each other could give back, and which findings are one story."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import planted_ranks as ranks
import pytest
from planted import MS, STEPS, US, slow_gpu
from planted_training import many_waves
from synth import Synth

from nsys_tui.analysis.nccl.waiting import collective_waits
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in, linked
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


def found(run: Callable[[Path], Synth], folder: Path) -> tuple[Case, list[Finding]]:
    case = Case(open_report(run(folder / f"{run.__name__}.sqlite").write(), use_cache=False))
    return case, find_in(case)


@pytest.mark.parametrize(("batches", "times", "ahead"), [(4, 8, 1), (16, 4, 1), (4, 8, 0)])
def test_a_pipeline_could_save_what_more_micro_batches_do_though_little_compute_hides_it(
    tmp_path: Path, batches: int, times: int, ahead: int
) -> None:
    def run(path: Path, more: int = 1) -> Synth:
        return ranks.forward_and_backward(path, more * batches, ahead=bool(ahead))

    case, findings = found(run, tmp_path)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert one.subject.startswith("send and receive")
    assert one.advice.endswith(f" use {times} times the micro-batches")
    finer, _ = found(lambda path: run(path, times), tmp_path)
    better = case.base_ns - finer.base_ns
    assert 0.8 * better < one.saved_ns <= 1.1 * better


def test_more_micro_batches_do_not_help_where_their_messages_cost_more(tmp_path: Path) -> None:
    def run(path: Path, batches: int = 64) -> Synth:
        return ranks.forward_and_backward(path, batches, ahead=False)

    case, findings = found(run, tmp_path)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert one.advice.endswith("receive ahead; more micro-batches would hardly help")
    finer, _ = found(lambda path: run(path, 128), tmp_path)
    hidden, _ = found(lambda path: ranks.forward_and_backward(path, 64), tmp_path)
    assert finer.base_ns > case.base_ns
    assert one.saved_ns == pytest.approx(case.base_ns - hidden.base_ns, rel=0.1)


@pytest.mark.parametrize(("reduced", "goes"), [((0, 1, 2, 3), 3), ((1, 3), 1), ((3,), 1)])
def test_of_gradients_reduced_several_times_a_step_one_time_stays(
    tmp_path: Path, reduced: tuple[int, ...], goes: int
) -> None:
    def run(path: Path) -> Synth:
        return ranks.accumulating(path, reduced)

    _, findings = found(run, tmp_path)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert one.saved_ns == 8 * goes * MS


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("buckets", "goes"), [(4, 0.75), (1, 1)])
def test_of_the_buckets_after_each_step_the_last_stays(
    tmp_path: Path, buckets: int, goes: float, named: bool
) -> None:
    def run(path: Path) -> Synth:
        synth = ranks.accumulating(path, (3,), 8, buckets)
        if not named:
            del synth.rows["NVTX_EVENTS"]
        return synth

    _, findings = found(run, tmp_path)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert one.saved_ns == 8 * goes * MS


@pytest.mark.parametrize("part", [2 * MS, MS])
def test_transfers_cost_what_the_last_rank_has_exposed_of_them(part: int, tmp_path: Path) -> None:
    """Those of a quick GPU begin late as well; where both are alike, one of each step stays."""
    _, findings = found(lambda path: ranks.queued_buckets(path, part), tmp_path)
    exposed = [one for one in findings if one.rule == "exposed_communication"]
    (one,) = (one for one in exposed if one.subject.startswith("communication not hidden"))
    assert [other.late for other in exposed if other is not one] == [1] * (part > MS)
    assert one.saved_ns == pytest.approx(12 * 1500 * US, rel=0.01)


def test_who_waits_for_a_late_rank_needs_no_compute_to_hide_it(tmp_path: Path) -> None:
    _, findings = found(ranks.late_behind_collectives, tmp_path)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert one.late == 3
    assert one.saved_ns == pytest.approx(12 * 5 * MS, rel=0.05)


def test_a_gpu_with_more_work_in_all_is_part_of_work_that_is_uneven_by_turns(
    tmp_path: Path,
) -> None:
    case, findings = found(ranks.hot_experts, tmp_path)
    (uneven,) = [one for one in findings if one.rule == "exposed_communication"]
    (more,) = [one for one in findings if one.rule == "gpu_imbalance"]
    assert more.same_as == uneven.subject
    assert "slower than" not in verdict(case, findings)


def test_compute_between_groups_of_migrations_is_no_fault(tmp_path: Path) -> None:
    _, findings = found(ranks.evicting, tmp_path)
    (one,) = [one for one in findings if one.rule == "migrations_in_kernels"]
    migrates, computes = 4 * 10 * 8 * 150 * US, 4 * 10 * 500 * US
    assert one.saved_ns == migrates - (migrates // 2 - computes), "a direction needs the bus"
    assert one.title.endswith(", faults not recorded"), "the first of each group is not known"


@pytest.mark.parametrize(("idle", "leads"), [(4 * MS, True), (500 * US, False)])
def test_much_idle_time_without_a_reason_leads_a_little_that_could_be_saved(
    tmp_path: Path, idle: int, leads: bool
) -> None:
    def run(path: Path) -> Synth:
        return ranks.unexplained(path, idle)

    case, findings = found(run, tmp_path)
    assert (findings[0].title.endswith("after cudaDeviceSynchronize, nothing recorded")) is leads
    assert "copies not hidden" in verdict(case, findings)


def test_nothing_is_found_where_nothing_else_is_said(tmp_path: Path) -> None:
    line = verdict(*found(many_waves, tmp_path))
    assert line.endswith("25.0% is k1. Nothing else found that would give back 1%")


def test_ranks_late_by_turns_are_explained_by_what_makes_each_of_them_late(tmp_path: Path) -> None:
    _, findings = found(ranks.slow_link_and_reads, tmp_path)
    (waits,) = [one for one in findings if one.rule == "exposed_communication"]
    assert waits.title.endswith("waiting for GPUs by turns")
    assert waits.same_as == findings[0].subject
    told = [one.rule for one in findings if one.saved_ns >= MS and not one.same_as]
    assert sorted(told) == ["gpu_idle", "slow_copies"]


@pytest.mark.parametrize(("slower", "told"), [(9_200_000, 800_000), (9_600_000, 0)])
def test_what_a_late_gpu_has_exposed_itself_is_told_where_it_is_much(
    tmp_path: Path, slower: int, told: int
) -> None:
    def run(path: Path) -> Synth:
        return slow_gpu(path, slower)

    _, findings = found(run, tmp_path)
    exposed = [one for one in findings if one.rule == "exposed_communication"]
    assert exposed[0].same_as == "GPU 1 slower than the others"
    alone = [(one.device, one.stake_ns, one.same_as) for one in exposed[1:]]
    assert alone == ([(1, STEPS * told, "")] if told else [])


@pytest.mark.parametrize("turns", [1, 2])
def test_two_late_ranks_are_each_priced_by_what_one_alone_costs(tmp_path: Path, turns: int) -> None:
    def run(path: Path, poll: int = 5 * MS, write: int = 6 * MS) -> Synth:
        return ranks.late_together(path, poll, write, turns)

    case, findings = found(run, tmp_path)
    told = {one.device: one for one in findings if one.rule == "gpu_idle"}
    advice = [one.advice for one in findings if one.title.endswith("for GPUs by turns")]
    assert advice == ["see what each GPU does before its collectives: they come late by turns"] * (
        turns - 1
    )
    for device, mended in ((1, (0, 6 * MS)), (2, (5 * MS, 0))):
        without, _ = found(lambda path, late=mended: run(path, *late), tmp_path)  # type: ignore[misc]
        assert told[device].saved_ns == pytest.approx(case.base_ns - without.base_ns, abs=6 * MS)
        assert ("comes sooner, too: " in told[device].advice) is (turns == 1)
    assert "not recorded" not in verdict(case, findings)
    assert f"(up to {'11.3' if turns == 1 else '38.4'}%)" in verdict(case, findings)


@pytest.mark.parametrize("turns", [1, 2])
def test_who_comes_before_a_rank_of_unknown_lateness_saves_nothing(
    tmp_path: Path, turns: int
) -> None:
    _, findings = found(lambda path: ranks.late_together(path, turns=turns, known=False), tmp_path)
    (told,) = (one for one in findings if one.rule == "gpu_idle" and one.device == 1)
    assert told.saved_ns == pytest.approx(0 if turns == 1 else 7 * 5 * MS, abs=MS)
    assert ("once GPU 2 comes sooner, too: " in told.advice) is (turns == 1)


def test_who_holds_up_the_first_of_queued_collectives_holds_up_all_of_them(tmp_path: Path) -> None:
    case, findings = found(ranks.late_to_a_queue, tmp_path)
    without, _ = found(lambda path: ranks.late_to_a_queue(path, 0), tmp_path)
    (idle,) = [one for one in findings if "fsync" in one.title]
    assert idle.saved_ns == pytest.approx(case.base_ns - without.base_ns, rel=0.01)


@pytest.mark.parametrize("reduce", ["ncclDevKernel_AllReduce", "hybrid_ep::device_sync_kernel"])
def test_waiting_beside_transfers_that_queue_is_what_the_last_rank_has_not_exposed(
    tmp_path: Path, reduce: str
) -> None:
    def run(path: Path, more: int = 800 * US) -> Synth:
        return ranks.uneven_by_turns(path, more, reduce)

    case, findings = found(run, tmp_path)
    even, fair = found(lambda path: run(path, -800 * US), tmp_path)
    (waits,) = [one for one in findings if one.rule == "exposed_communication"]
    assert waits.title.endswith("waiting for GPUs by turns")
    assert waits.saved_ns == pytest.approx(case.base_ns - even.base_ns, rel=0.1)
    assert not [one for one in fair if "waiting" in one.title]


def test_waiting_while_the_own_host_launches_what_is_computed_beside_costs_nothing(
    tmp_path: Path,
) -> None:
    case, findings = found(ranks.apart_at_launch, tmp_path)
    without, _ = found(lambda path: ranks.apart_at_launch(path, 0), tmp_path)
    (waits,) = [one for one in findings if one.subject == "waiting for GPU 0 in collectives"]
    assert 1 <= waits.saved_ns / (case.base_ns - without.base_ns) < 1.3
    assert "Most of the time" not in verdict(case, findings)


def test_what_hosts_of_other_ranks_do_is_no_reason_to_wait_for_them_nevertheless(
    tmp_path: Path,
) -> None:
    case, findings = found(ranks.pausing_by_turns, tmp_path)
    without, _ = found(lambda path: ranks.pausing_by_turns(path, 0), tmp_path)
    (waits,) = [one for one in findings if one.title.endswith("for GPUs by turns")]
    own = 3 * 30 * MS * (waits.device != 2)
    assert waits.saved_ns + own == pytest.approx(case.base_ns - without.base_ns, rel=0.01)


def test_who_reduces_beside_copies_waits_for_nobody(tmp_path: Path) -> None:
    _, findings = found(ranks.beside_copies, tmp_path)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert (one.late, one.subject) == (-1, "communication not hidden")


def test_steps_that_one_gpu_makes_longer_are_its_story_and_those_of_all_are_not(
    tmp_path: Path,
) -> None:
    for how, leader in (
        ({}, "GPU 1 slower than the others"),
        ({"hot": 1.3, "slow": 1.3, "more": 1.6}, ""),
    ):
        _, findings = found(lambda path, how=how: ranks.longer_steps(path, **how), tmp_path)  # type: ignore[misc]
        told = {one.rule: one for one in findings}
        assert told["gpu_imbalance"].device == 1
        assert told["slow_steps"].same_as == leader


def test_several_faults_of_a_late_rank_explain_together_what_the_others_wait(
    tmp_path: Path,
) -> None:
    _, findings = found(ranks.saving_rank, tmp_path)
    told = {one.rule: one for one in findings}
    assert told["exposed_communication"].late == 0
    assert told["exposed_communication"].same_as == told["exposed_copies"].subject


def test_what_a_rank_does_only_once_explains_a_part_of_what_the_others_wait(tmp_path: Path) -> None:
    _, findings = found(ranks.late_at_first, tmp_path)
    told = {one.rule: one for one in reversed(findings)}
    assert told["warm_up"].saved_ns == pytest.approx(40 * MS, rel=0.1)
    assert told["gpu_idle"].saved_ns == pytest.approx(20 * MS, rel=0.1)
    assert told["exposed_communication"].late == 0
    assert told["exposed_communication"].same_as == told["gpu_idle"].subject


@pytest.mark.parametrize(
    ("wider", "others", "told"),
    [(1.4, 1.1, "GPU 1 has more work than the others"), (1.1, 1.0, "GPU 1 slower than the others")],
)
def test_a_gpu_with_larger_grids_gives_of_its_work_and_a_slow_one_could_be_as_fast(
    tmp_path: Path, wider: float, others: float, told: str
) -> None:
    """Work is divided, so that all have a tenth more; a slow GPU could be as fast as the rest."""
    case, findings = found(lambda path: ranks.buckets(path, 0, 1.4, wider), tmp_path)
    (one,) = [one for one in findings if one.rule == "gpu_imbalance"]
    assert one.subject == told
    mended, _ = found(lambda path: ranks.buckets(path), tmp_path)
    gain = case.base_ns - mended.base_ns - round(16 * 4 * 2 * MS * (others - 1))
    assert one.saved_ns == pytest.approx(gain, rel=0.02)


@pytest.mark.parametrize(("late", "longer"), [(5 * MS, 1.2), (500 * US, 1.5), (2 * MS, 1.5)])
def test_a_slow_gpu_and_a_late_rank_are_each_priced_by_what_one_alone_costs(
    tmp_path: Path, late: int, longer: float
) -> None:
    case, findings = found(lambda path: ranks.buckets(path, late, longer), tmp_path)
    told = {one.rule: one for one in findings if one.device in (1, 3)}
    for rule, mended in (("gpu_idle", (0, longer)), ("gpu_imbalance", (late, 1.0))):
        without, _ = found(lambda path, run=mended: ranks.buckets(path, *run), tmp_path)  # type: ignore[misc]
        saved = told[rule].saved_ns if rule in told else 0
        assert saved == pytest.approx(case.base_ns - without.base_ns, abs=0.03 * case.base_ns)


def test_batches_of_a_rank_that_steps_sooner_are_no_set_up(tmp_path: Path) -> None:
    case, findings = found(ranks.batches_ahead, tmp_path)
    assert case.has_named_steps
    assert not [one for one in findings if one.rule in ("warm_up", "repeated_uploads")]


@pytest.mark.parametrize(("every", "saved"), [(6 * US, 2 * MS), (20 * US, 0)])
def test_a_slow_gpu_costs_nothing_where_it_waits_for_launches(
    tmp_path: Path, every: int, saved: int
) -> None:
    _, findings = found(lambda path: ranks.slower_but_late_launched(path, every), tmp_path)
    (told,) = (one for one in findings if one.rule == "gpu_imbalance")
    assert (told.saved_ns, told.severity) == (saved, Severity.HIGH if saved else Severity.LOW)


def test_stages_with_uneven_work_gain_less_than_the_longest_one_has_more(tmp_path: Path) -> None:
    """A pipeline of even stages fills and drains slower than one of short stages but one."""
    case, findings = found(lambda path: ranks.forward_and_backward(path, 8, last=3), tmp_path)
    (one,) = [one for one in findings if one.rule == "gpu_imbalance"]
    even, _ = found(lambda path: ranks.forward_and_backward(path, 8, work=1.5), tmp_path)
    gain = case.base_ns - even.base_ns
    assert one.subject == "GPU 3 has more work than the others"
    assert 0.9 * gain <= one.saved_ns <= 1.3 * gain


def test_steps_that_wait_for_room_in_the_queue_are_not_slow_ones(tmp_path: Path) -> None:
    """Each rank's launches fall in other steps of the first one's than of its own."""
    _, findings = found(ranks.far_ahead, tmp_path)
    assert "slow_steps" not in {one.rule for one in findings}
    _, findings = found(ranks.longer_steps, tmp_path)
    assert "slow_steps" in {one.rule for one in findings}


@pytest.mark.parametrize(("beside", "told"), [(2, "compute could hide no more"), (1, "overlap")])
def test_where_all_compute_hides_communication_already_less_is_to_be_sent(
    tmp_path: Path, beside: int, told: str
) -> None:
    """Two GPUs gather for 8 ms a step, beside one or both of their kernels of 2 ms."""
    synth = Synth(tmp_path / "r.sqlite")
    for gpu in range(2):
        synth.process(10 + gpu, f"rank {gpu}").gpu(gpu)
        where: dict[str, Any] = {"device": gpu, "context": gpu + 1}
        for step in range(12):
            begin, first = step * 12 * MS, step * 12 * MS + (2 - beside) * 2 * MS
            synth.kernel("gemm", begin, begin + 2 * MS, **where)
            synth.kernel("softmax", begin + 2 * MS, begin + 4 * MS, **where)
            synth.kernel("ncclDevKernel_AllGather", first, begin + 12 * MS, stream=20, **where)
    case = Case(open_report(synth.write(), use_cache=False))
    findings = find_in(case)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert one.advice.startswith(told)
    only = "Only fewer bytes or a faster link shorten it"
    assert (only in verdict(case, findings)) is (beside == 2)
    assert one.saved_ns == pytest.approx((2 - beside) * 12 * 2 * MS, rel=0.1)


def test_what_compute_cannot_hide_of_a_slow_network_is_said_beside_what_it_can(
    tmp_path: Path,
) -> None:
    synth = Synth(tmp_path / "r.sqlite")
    for gpu in range(2):
        synth.process(10 + gpu, f"rank {gpu}").gpu(gpu)
        where: dict[str, Any] = {"device": gpu, "context": gpu + 1}
        for begin in range(0, 12 * 44 * MS, 44 * MS):
            synth.kernel("gemm", begin, begin + 2 * MS, **where)
            end = begin + 44 * MS
            synth.kernel("ncclDevKernel_AllGather", begin + 2 * MS, end, stream=20, **where)
    case = Case(open_report(synth.write(), use_cache=False))
    findings = find_in(case)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert 0 < one.saved_ns <= 24 * MS
    assert one.advice.startswith("compute could hide no more of it")
    assert "only fewer bytes or a faster link shorten the rest of it" in verdict(case, findings)


@pytest.mark.parametrize(("cost", "told"), [(5, "idle"), (4, "")])
def test_who_waits_for_a_late_host_is_told_so_however_long_transfers_take(
    tmp_path: Path, cost: int, told: str
) -> None:
    """Of 40 ms exposed 10 ms are the wait, of which the host's idle time explains a part."""
    _, (found_one, *_) = found(slow_gpu, tmp_path)
    idle = replace(found_one, rule="gpu_idle", subject="idle", device=1, saved_ns=cost * MS)
    idle = replace(idle, stake_ns=cost * MS, held_ns=0, late=-1, same_as="")
    waits = replace(idle, rule="exposed_communication", device=0, saved_ns=10 * MS, late=1)
    waits = replace(waits, stake_ns=40 * MS, subject="waiting")
    (one,) = [one for one in linked([waits, idle]) if one.subject == "waiting"]
    assert one.same_as == told


def test_hiding_communication_hides_no_wait_for_other_ranks(tmp_path: Path) -> None:
    case, findings = found(ranks.waiting_less_than_sending, tmp_path)
    without, _ = found(lambda path: ranks.waiting_less_than_sending(path, 0), tmp_path)
    (one,) = [one for one in findings if one.rule == "exposed_communication"]
    assert one.advice.startswith("overlap")
    assert one.saved_ns == pytest.approx(case.base_ns - without.base_ns, rel=0.05)
    assert one.stake_ns > 1.5 * one.saved_ns


def test_a_frameworks_kernel_that_waits_for_nobody_is_no_collective(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite")
    for gpu in range(2):
        for step in range(10):
            at = step * MS
            local, shared = at + gpu * 200 * US, at + 500 * US + gpu * 50 * US
            synth.process(10 + gpu).kernel("hybrid_ep::scan", local, local + 9 * US, device=gpu)
            synth.kernel("hybrid_ep::device_sync", shared, at + 600 * US, device=gpu)
    waits = collective_waits(open_report(synth.write(), use_cache=False))
    assert (len(waits), waits.unmatched) == (20, 20)
