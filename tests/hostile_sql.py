"""Queries of people who mean harm: each must be refused, wherever it is asked.

Gathered from SQLite's own lists of functions, pragmas and statements ("Defense Against The Dark
Arts"), from lists of SQL injections for SQLite, and by chance.
"""

from __future__ import annotations

_WRITES = """
insert into kernels values (1)
insert into StringIds values (99999, 'x')
insert into temp.stalls values (1)
insert into _threads values (1, 'x')
replace into StringIds values (1, 'x')
update StringIds set value = 'x'
update sqlite_master set sql = 'x'
delete from StringIds
delete from kernels
drop table StringIds
drop view kernels
create table t (a)
create temp table t (a)
create view v as select 1
create temp view v as select 1
create index i on StringIds (value)
create trigger t after insert on StringIds begin select 1; end
create temp trigger t after insert on stalls begin select 1; end
create virtual table v using fts5(a)
create virtual table temp.v using rtree(a, b, c)
create virtual table v using dbstat
create table t as select * from StringIds
alter table StringIds rename to s
alter table StringIds add column c
with t as (select 1) insert into StringIds select 1, 'x'
with t as (select 1) delete from StringIds
insert into StringIds values (77777, 'x') returning value
reindex
analyze
vacuum
vacuum into 'stolen.sqlite'
vacuum main into '/tmp/stolen.sqlite'
attach 'other.sqlite' as other
attach '/etc/passwd' as p
attach database ':memory:' as m
attach database 'file:x?mode=rwc' as m
detach main
detach temp
begin
begin immediate
commit
rollback
savepoint s
release s
end
""".strip().splitlines()

_READS = """
select load_extension('evil')
select printf('%.*c', 1000000000, 'x')
select format('%.999999999c', 'x')
select load_extension('evil.so', 'entry')
select readfile('/etc/passwd')
select writefile('x', 'y')
select edit('x')
select fts3_tokenizer('simple')
select fts3_tokenizer('x', x'4141414141414141')
select fts5(x'00')
select sqlite_offset(value) from StringIds
select sqlite_compileoption_get(1)
select sqlite_log(1, 'x')
select rtreecheck('main', 'x')
select matchinfo(shadow) from shadow
select snippet(shadow) from shadow
select optimize(shadow) from shadow
select sqlite_rename_table('main', 'x', 'y', 'z', 'a', 'b', 0)
select sqlite_drop_column(1, 2, 3)
select match('a', 'b')
select 'a' regexp 'b'
select 'a' match 'b'
select * from trap
select count(*) from trap
select * from shadow
select count(*) from shadow
select * from shadow where shadow match 'a'
insert into shadow(shadow) values ('optimize')
select * from dbstat
select count(*) from dbstat
select * from sqlite_dbpage
update sqlite_dbpage set data = x'00' where pgno = 1
select * from sqlite_stmt
select * from bytecode('select 1')
select * from tables_used('select 1')
select * from fsdir('/')
select * from fts3tokenize('simple', 'a b')
select * from fts5vocab
select * from generate_series(1, 1000000000000)
select * from csv('x')
select * from zipfile('x')
select * from pragma_database_list
select * from pragma_compile_options
select * from pragma_function_list
select * from pragma_module_list
select * from pragma_journal_mode('wal')
select * from pragma_integrity_check
select * from temp.pragma_user_version
select 1; drop table StringIds
select 1; select 2
select ?1
select :name
""".strip().splitlines()

HOSTILE = [*_WRITES, *_READS]
UNSTOPPABLE = (
    "with recursive a(x) as (select 1 union all select x + 1 from a limit 9000)"
    " select sum(instr(hex(zeroblob(100000)) || x, hex(zeroblob(50000)) || 'x')) from a"
)
"""Calls that heed nothing, each as long as it may be: an hour of them."""
