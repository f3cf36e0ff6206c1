"""Makes docs/sql.md from the views, the limits and the snippets."""

from __future__ import annotations

from nsys_tui.reader.views import VIEWS
from nsys_tui.sql.answer_table import MOST_BYTES
from nsys_tui.sql.console import TIMEOUT_S
from nsys_tui.sql.filled import DOCUMENTS, record_columns
from nsys_tui.sql.guard import DISK, LONGEST_VALUE, MEMORY, PRAGMAS, SLOW
from nsys_tui.sql.snippets import SNIPPETS

HEAD = """# Questions of your own, in SQL

What no screen answers can be asked in SQL: on screen 8 of the app, or in a pipe. A query sees the
tables of nsys as they are in the file, and views that are the same in every generation of nsys.

```sh
nsys-tui sql report.sqlite "select name, sum(duration_ns) from kernels group by 1 order by 2 desc"
nsys-tui sql report.sqlite "select * from stalls limit 5" --format json
nsys-tui sql report.sqlite --tables
```

`-` reads the query from standard input, `--file` from a file. `--format` is that of all verbs;
`--limit` and `--timeout` bound rows and time. The SQL is that of the SQLite that your Python has.
DuckDB is no choice here: it reads SQLite files by an extension that it downloads when it is used,
and has none of the limits below.
A `.nsys-rep` is exported first, as everywhere, which needs an nsys.

On screen 8, `i` writes, Tab completes tables and columns, F5 asks, Esc cancels; F2 has the
questions below, F3 those asked before. The answer is a table like all others: `s` sorts, `F`
counts, `e` writes a file, F4 draws the column under the cursor. Enter on a row with `start_ns`
shows it on the timeline.

## What a query can do

It reads, and nothing else. The file is opened read-only; statements that write, attach or change
settings, functions that touch files or load code, and tables that are not the report's are
refused before they run (pragmas: {pragmas} only). printf is refused too: use round.

| bound | is |
|---|---|
| time | {timeout:.0f} s; `--timeout` sets it, filled views included; the verb ends with 130 |
| rows | 1,000; json, csv and tsv: all; `--limit` sets it; screen 8: 100,000 |
| size of an answer | {answer} MiB |
| memory of SQLite | {memory} MiB |
| temporary files, for sorting | {disk} MiB; they have no names |
| one value or row | {value} MiB; {slow} |

Your queries see names as they were recorded, with tokens and passwords that stand in them; look at
an answer before it leaves the house. With `--redacted`, and always when [an agent](agents.md) asks,
a query reads texts [without them](share.md#what-is-left-out), so that `substr`, `hex` and
comparisons find no piece of one either.

Exit codes: 0 an answer, even an empty one; 64 not understood or not allowed; 66 the report has
nothing of what was asked (it says which option of nsys records it); 130 time was up.

## Views

Times are ns since the session began, as everywhere in the program; `utc_ns` is ns since 1970. Ids
are unique only inside a process: join on `global_pid` and `correlation`, or use `launches`. Views
over one table of nsys cost what SQLite takes for that table. `launches`, `stalls`, `steps` and
`collectives` are temporary tables in memory, made by the analyses when a query first asks for
them: their figures are those of `nsys-tui stalls`, `iterations` and `collectives`. So are names
of threads, processes, ranks, domains, calls and kernels (`short_name`), and `category`: nsys has
no index for them.
"""


def sql_page() -> str:
    """The whole page."""
    parts = [
        HEAD.format(
            pragmas=", ".join(sorted(PRAGMAS)),
            timeout=TIMEOUT_S,
            answer=MOST_BYTES >> 20,
            memory=MEMORY >> 20,
            disk=DISK >> 20,
            value=LONGEST_VALUE >> 20,
            slow="; ".join(
                f"{most} KiB in queries with {', '.join(n for n in SLOW if SLOW[n] == most)}"
                for most in dict.fromkeys(SLOW.values())
            ),
        )
    ]
    for view in VIEWS:
        columns = record_columns(view.name) if view.name in DOCUMENTS else view.columns
        rows = [f"| `{column.name}` | {column.text} |" for column in columns]
        text = view.text[0].upper() + view.text[1:]
        parts.append("\n".join([f"### {view.name}\n\n{text}.\n", "| column | is |", "|---|---|",
                                *rows, ""]))  # fmt: skip
    parts.append("## Questions to start from\n")
    parts += [f"### {snippet.title}\n\n```sql\n{snippet.sql}\n```\n" for snippet in SNIPPETS]
    return "\n".join(parts)
