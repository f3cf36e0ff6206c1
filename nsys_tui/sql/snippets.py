"""Questions that engineers ask often, to start from; the console, the documentation and tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Snippet:
    """One question and its SQL."""

    title: str
    sql: str


SNIPPETS: Final = (
    Snippet("kernels that take most time", """\
SELECT short_name, count(*) AS calls, sum(duration_ns) AS total_ns, avg(duration_ns) AS mean_ns,
       max(duration_ns) AS longest_ns
FROM kernels GROUP BY short_name ORDER BY total_ns DESC LIMIT 20"""),
    Snippet("the longest kernels, each", """\
SELECT start_ns, duration_ns, device, stream, short_name
FROM kernels ORDER BY duration_ns DESC LIMIT 20"""),
    Snippet("kernels whose time varies most", """\
SELECT short_name, count(*) AS calls, avg(duration_ns) AS mean_ns,
       max(duration_ns) * 1.0 / avg(duration_ns) AS longest_of_mean
FROM kernels GROUP BY short_name HAVING calls >= 10 ORDER BY longest_of_mean DESC LIMIT 20"""),
    Snippet("tiny kernels: candidates for fusion or CUDA graphs", """\
SELECT short_name, count(*) AS calls, avg(duration_ns) AS mean_ns
FROM kernels WHERE duration_ns < 5000 GROUP BY short_name ORDER BY calls DESC LIMIT 20"""),
    Snippet("compute and communication per GPU", """\
SELECT device, category, count(*) AS calls, sum(duration_ns) AS total_ns
FROM kernels GROUP BY device, category ORDER BY device, category"""),
    Snippet("the same kernel on each GPU: who is slower", """\
SELECT short_name, device, count(*) AS calls, avg(duration_ns) AS mean_ns
FROM kernels WHERE category = 'compute' GROUP BY short_name, device
ORDER BY sum(sum(duration_ns)) OVER (PARTITION BY short_name) DESC, short_name, device LIMIT 40"""),
    Snippet("kernels with few blocks: GPUs have some 100 SMs", """\
SELECT short_name, grid_x * grid_y * grid_z AS blocks, block_x * block_y * block_z AS threads,
       count(*) AS calls, sum(duration_ns) AS total_ns
FROM kernels WHERE grid_x * grid_y * grid_z < 100
GROUP BY short_name, blocks, threads ORDER BY total_ns DESC LIMIT 20"""),
    Snippet("kernels with many registers or much shared memory", """\
SELECT short_name, registers, static_shared_bytes + dynamic_shared_bytes AS shared_bytes,
       count(*) AS calls, sum(duration_ns) AS total_ns
FROM kernels WHERE registers > 128 OR shared_bytes > 48 * 1024
GROUP BY short_name, registers, shared_bytes ORDER BY total_ns DESC LIMIT 20"""),
    Snippet("work per stream", """\
SELECT device, pid, stream, count(*) AS kernels, sum(duration_ns) AS total_ns,
       min(start_ns) AS start_ns, max(end_ns) AS end_ns
FROM kernels GROUP BY device, pid, stream ORDER BY total_ns DESC"""),
    Snippet("kernels over time, in 100 parts", """\
WITH span AS (SELECT min(start_ns) AS a, max(end_ns) - min(start_ns) + 1 AS width FROM kernels)
SELECT a + (start_ns - a) * 100 / width * width / 100 AS start_ns, count(*) AS kernels,
       sum(duration_ns) AS total_ns
FROM kernels, span GROUP BY 1 ORDER BY 1"""),
    Snippet("copies by direction and memory, with bandwidth", """\
SELECT kind, source, target, count(*) AS copies, sum(bytes) AS bytes,
       sum(duration_ns) AS total_ns, round(sum(bytes) * 1.0 / sum(duration_ns), 2) AS gb_per_s
FROM copies GROUP BY kind, source, target ORDER BY total_ns DESC"""),
    Snippet("copies of pageable memory, which block their thread", """\
SELECT start_ns, duration_ns, kind, bytes, device, stream
FROM copies WHERE 'Pageable' IN (source, target) ORDER BY duration_ns DESC LIMIT 20"""),
    Snippet("many small copies", """\
SELECT kind, bytes, count(*) AS copies, sum(duration_ns) AS total_ns
FROM copies WHERE bytes < 65536 GROUP BY kind, bytes ORDER BY copies DESC LIMIT 20"""),
    Snippet("CUDA calls that take most time", """\
SELECT name, thread, count(*) AS calls, sum(duration_ns) AS total_ns, max(duration_ns) AS longest_ns
FROM api GROUP BY name, thread ORDER BY total_ns DESC LIMIT 20"""),
    Snippet("CUDA calls that failed", """\
SELECT start_ns, duration_ns, name, return_value, thread
FROM api WHERE return_value <> 0 ORDER BY start_ns LIMIT 100"""),
    Snippet("waits for the GPU, longest first", """\
SELECT start_ns, duration_ns, name, thread
FROM api WHERE name LIKE '%Synchronize%' ORDER BY duration_ns DESC LIMIT 20"""),
    Snippet("launch latency by kernel", """\
SELECT k.short_name, count(*) AS calls, avg(l.latency_ns) AS latency_ns, avg(l.queue_ns) AS queue_ns
FROM launches l JOIN kernels k ON k.id = l.id WHERE l.kind = 'kernel' AND l.api_id IS NOT NULL
GROUP BY k.short_name ORDER BY sum(l.latency_ns) DESC LIMIT 20"""),
    Snippet("NVTX ranges that take most time", """\
SELECT name, domain, count(*) AS ranges, sum(duration_ns) AS total_ns,
       max(duration_ns) AS longest_ns
FROM ranges GROUP BY name, domain ORDER BY total_ns DESC LIMIT 20"""),
    Snippet("kernels launched inside each range of some name", """\
SELECT r.start_ns, r.end_ns, r.name AS range, count(*) AS kernels, sum(k.duration_ns) AS total_ns
FROM ranges r JOIN api a ON a.global_tid = r.global_tid AND a.start_ns >= r.start_ns
     AND a.start_ns < r.end_ns
JOIN launches l ON l.api_id = a.id AND l.kind = 'kernel' JOIN kernels k ON k.id = l.id
WHERE r.name LIKE '%step%' GROUP BY r.id ORDER BY r.start_ns LIMIT 100"""),
    Snippet("why GPUs stood idle", """\
SELECT device, cause, count(*) AS gaps, sum(idle_ns) AS idle_ns, max(idle_ns) AS longest_ns
FROM stalls WHERE kind NOT IN ('head', 'tail') GROUP BY device, cause ORDER BY idle_ns DESC"""),
    Snippet("steps and how long beyond the median they took", """\
SELECT start_ns, label, time_ns, of_median_share, gpu_busy_share, why_longer
FROM steps ORDER BY time_ns DESC LIMIT 20"""),
    Snippet("collectives by operation and size, with bus bandwidth", """\
SELECT operation, bytes, count(*) AS calls, avg(time_ns) AS mean_ns,
       round(max(bus_bytes_per_s) / 1e9, 1) AS best_bus_gb_per_s, avg(skew_ns) AS skew_ns
FROM collectives GROUP BY operation, bytes ORDER BY sum(time_ns) DESC LIMIT 20"""),
)  # fmt: skip
"""In the order of the list."""
