"""Short jobs of our own beside a capture: an export, an import; they survive a cut as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.capture import stop
from nsys_tui.capture.follow import Follower
from nsys_tui.capture.supervisor import keeper

if TYPE_CHECKING:
    from nsys_tui.capture.fetch import RemoteFile
    from nsys_tui.capture.job import Job


async def run_own(job: Job, name: str, script: str, output: str) -> tuple[RemoteFile | None, str]:
    """Runs a script over there, once more if it hangs.

    Args:
        job: the capture that it belongs to.
        name: the job's id.
        script: its ``run.sh``.
        output: the file that it makes.

    Returns:
        The file, if the script ended well and made it, and what was said last.
    """
    start = {"RUN": script, "WRAP": keeper(), "OWNER": name, "ANYWAY": "yes"}
    for _ in range(2):
        follower = Follower(job, name, start | {"PATHS": output})
        outcome = await follower.run()
        if not follower.gave_up:
            break
        await stop.clear(job, name)
    made = next(iter(follower.files), None) if outcome.status == 0 else None
    return made, follower.last_words
