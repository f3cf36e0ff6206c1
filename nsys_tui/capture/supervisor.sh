# The far side of a capture: POSIX sh, read from stdin by `exec sh -s`, nothing installed.
# The client puts assignments before this text: NT_NONCE NT_MODE NT_J (job id) NT_B (folder of all
# jobs) and what the verb needs. No name without NT_ is assigned here: one that the login shell
# exports would keep its export, and the program would see our value in place of its own.
# Answers are lines that start with "@@nt "; whatever a login shell prints before "@@nt hello" is
# not ours. Paths come last on a line. The last line is "@@nt end".
set -u
nt_umask=$(umask) # the program's, and not ours
umask 077

nt_say() { printf '@@nt %s\n' "$*"; }
nt_flat() { tr '\n\r' '  ' | cut -c1-500; }
nt_has() { command -v "$1" > /dev/null 2>&1; }
nt_limit() {
  nt_seconds=$1; shift
  if timeout 1 true 2> /dev/null; then timeout "$nt_seconds" "$@"; else "$@"; fi
}
nt_there() { # seconds, command: runs it in the environment that the preamble makes
  nt_world
  (eval "$NT_WORLD"; nt_limit "$@") < /dev/null
}
nt_world() { # sets NT_WORLD, once, to assignments of that environment
  [ -n "$NT_PREAMBLE" ] || return 0
  nt_file=$NT_B/.world.$$
  # shellcheck disable=SC2086
  if (mkdir -p "$NT_B" && printf '%s\n%s\n' "$NT_PREAMBLE" 'exec sh -c "export -p > \"\$1.new\"" sh "$0"' > "$nt_file") 2> /dev/null &&
    nt_limit 60 $NT_SHELL "$nt_file" > /dev/null 2>&1 < /dev/null; then NT_WORLD=$(cat "$nt_file.new"); fi
  rm -f "$nt_file" "$nt_file.new"
  NT_PREAMBLE=
}
nt_nap() { sleep 0.2 2> /dev/null || sleep 1; }
nt_doze() { # a moment, and less where the job ends in it; sleep alone is a process
  for nt_try in 1 2 3 4; do
    sleep 0.05 2> /dev/null || { sleep 1; return; }
    [ ! -e "$NT_D/exit" ] || return 0
  done
}
nt_size() { nt_bytes=$(wc -c 2> /dev/null < "$1") && echo $((nt_bytes)); }
nt_mtime() { stat -c %Y -- "$1" 2> /dev/null || stat -f %m -- "$1" 2> /dev/null || echo 0; }
nt_hash() {
  # openssl first: measured 0.9 GB/s against 0.25 GB/s of sha256sum on the same processor
  if nt_has openssl; then openssl dgst -sha256 < "$1" | sed 's/.*= *//'
  elif nt_has sha256sum; then sha256sum < "$1" | cut -c1-64
  elif nt_has shasum; then shasum -a 256 < "$1" | cut -c1-64
  else printf 'cksum:%s\n' "$(cksum < "$1" | tr ' ' ':')"; fi
}
nt_chunk() { # file, first byte, count; NULs stand for what is cut off meanwhile
  { tail -c "+$(($2 + 1))" "$1"; cat /dev/zero; } 2> /dev/null | if head -c 0 < /dev/null > /dev/null 2>&1; then head -c "$3"
  else dd bs=1 count="$3" 2> /dev/null; fi
}

# --- what state is a job in: absent stillborn starting running lost, or "exit N"
nt_alive() { # pid began boot
  [ "$3" = "$NT_BOOT" ] || return 1
  kill -0 "-$1" 2> /dev/null || return 1
  [ -r /proc/self/stat ] || return 0
  if read -r nt_stat 2> /dev/null < "/proc/$1/stat"; then
    nt_stat=${nt_stat##*) }
    # shellcheck disable=SC2086
    set -- "$1" "$2" $nt_stat
    [ "$2" = "${22}" ] || return 1 # the number belongs to another process now
    [ "$3" = Z ] || return 0
  fi
  # where nobody reaps, a group of zombies answers for ever: look for a living member
  cat /proc/[0-9]*/stat 2> /dev/null | sed 's/^.*) //' | grep -q "^[^Z] [0-9]* $1 "
}
nt_exit_of() { # job folder; sets NT_STATE when the exit file is there
  [ -e "$1/exit" ] || return 1
  read -r nt_rc < "$1/exit"
  NT_STATE="exit $nt_rc"
}
nt_state() { # job id; sets NT_STATE
  NT_D1=$NT_B/$1
  if [ ! -d "$NT_D1" ]; then NT_STATE=absent
  elif nt_exit_of "$NT_D1"; then :
  elif [ -e "$NT_D1/submitted" ]; then nt_submitted_state "$1" "$NT_D1"
  elif [ ! -e "$NT_D1/launched" ]; then NT_STATE=stillborn
  elif [ ! -s "$NT_D1/pid" ]; then
    NT_STATE=starting
    [ -z "$(find "$NT_D1/launched" -mmin +1 2> /dev/null)" ] || NT_STATE=lost
  else
    read -r nt_pid nt_began nt_boot_id < "$NT_D1/pid"
    NT_STATE=running
    nt_alive "$nt_pid" "$nt_began" "$nt_boot_id" && return
    for nt_try in 1 2 3 4 5 6; do # its keeper is just writing the status down
      nt_exit_of "$NT_D1" && return
      nt_nap
    done
    NT_STATE=lost
  fi
  return 0
}
nt_submitted_state() { # job id, folder: as the scheduler that took it knows it
  NT_STATE=running nt_by=
  read -r nt_by < "$2/submitted"
  case $nt_by in '' | *[!a-z]*) ;; *) "nt_${nt_by}_state" "$1" "$2" ;; esac
}
nt_tell_state() {
  nt_state "$NT_J"
  nt_say "state $NT_STATE"
  [ -z "$NT_SCHEDULER" ] || { "nt_${NT_SCHEDULER}_queue" "$NT_J" "$NT_D" && [ -n "$NT_QUEUE" ] && nt_say "queue $NT_QUEUE"; }
  nt_pid=$(cat "$NT_D/pid" 2> /dev/null) && nt_say "pid ${nt_pid%% *}"
  [ ! -e "$NT_D/queued" ] || nt_say "job $(cat "$NT_D/queued")"
}

# --- one capture at a time on a target
nt_lock() { # sets nothing; says "locked …" and fails when another capture runs
  NT_L=$NT_B/lock.$NT_T
  nt_turn=0
  while ! (set -C; printf '%s\n' "$NT_J" > "$NT_L") 2> /dev/null; do
    nt_holder=$(cat "$NT_L" 2> /dev/null)
    [ "$nt_holder" = "$NT_J" ] && return 0
    case $nt_holder in
    '' | *[!A-Za-z0-9-]*) sleep 1 ;; # just being written, or never finished
    *)
      nt_state "$nt_holder"
      case $NT_STATE in
      running | starting)
        nt_say "locked $nt_holder $(cat "$NT_B/$nt_holder/owner" 2> /dev/null | nt_flat)"
        return 1 ;;
      esac
      nt_say "note took over the lock of $nt_holder, which has ended" ;;
    esac
    mv "$NT_L" "$NT_L.$NT_J" 2> /dev/null && rm -f "$NT_L.$NT_J"
    nt_turn=$((nt_turn + 1))
    [ $nt_turn -lt 5 ] || { nt_say "error cannot write the lock $NT_L"; return 1; }
  done
}

# --- verbs
nt_start() {
  mkdir -p "$NT_B" 2> /dev/null || { nt_say "error cannot make the folder $NT_B"; return; }
  if [ -d "$NT_D" ]; then nt_started_before; return; fi
  case $NT_OUT_DIR in '' | /*) ;; *) NT_OUT_DIR=$NT_CWD_ABS/$NT_OUT_DIR ;; esac
  if [ -n "$NT_OUT_DIR" ] && ! { [ -d "$NT_OUT_DIR" ] && [ -w "$NT_OUT_DIR" ]; }; then
    nt_say "no_folder $NT_OUT_DIR"
    return
  fi
  if [ -n "$NT_TAKEN" ] && [ "$NT_FORCE" != yes ]; then
    case $NT_TAKEN in /*) nt_taken=$NT_TAKEN ;; *) nt_taken=$NT_CWD_ABS/$NT_TAKEN ;; esac
    if [ -e "$nt_taken" ]; then nt_say "taken $nt_taken"; return; fi
  fi
  if [ "$NT_ANYWAY" != yes ]; then nt_lock || return; fi
  if ! mkdir "$NT_D" 2> /dev/null; then
    if [ -d "$NT_D" ]; then nt_started_before; else nt_say "error cannot make the folder $NT_D"; fi
    return
  fi
  if ! nt_write_files; then
    nt_say "error cannot write into $NT_D: $(df -Pk "$NT_B" | tail -n 1 | nt_flat)"
    nt_drop
    return
  fi
  if [ -n "$NT_BATCH" ]; then nt_submit; else nt_launch; fi
}
nt_started_before() { # by an earlier request whose answer was lost; it may be at it this moment
  nt_n=0
  while nt_state "$NT_J" && [ "$NT_STATE" = stillborn ] && [ $nt_n -lt 25 ]; do nt_nap; nt_n=$((nt_n + 1)); done
  nt_tell_state
}
nt_write_files() {
  printf '%s' "$NT_RUN" > "$NT_D/run.sh" && printf '%s' "$NT_WRAP" > "$NT_D/wrap.sh" &&
    printf '%s\n' "$NT_OWNER" > "$NT_D/owner" && printf '%s\n' "$nt_umask" > "$NT_D/umask" &&
    printf '%80s\n' '' > "$NT_D/pid.tmp" &&
    { [ -z "$NT_SECRETS" ] || printf '%s' "$NT_SECRETS" > "$NT_D/env"; } &&
    { [ -z "$NT_FUNCTIONS" ] || printf '%s' "$NT_FUNCTIONS" > "$NT_D/functions.json"; } &&
    { [ -z "$NT_BATCH" ] || printf '%s' "$NT_BATCH" > "$NT_D/batch.sh"; }
}
nt_drop() { # gives up a job that never ran
  nt_guard || return
  rm -rf -- "$NT_D"
  [ "$(cat "$NT_B/lock.$NT_T" 2> /dev/null)" != "$NT_J" ] || rm -f "$NT_B/lock.$NT_T"
}
nt_launch() {
  : > "$NT_D/launched"
  # shellcheck disable=SC2086
  sh "$NT_D/wrap.sh" "$NT_D" "$NT_B/lock.$NT_T" "$NT_LOG_LIMIT" launch $NT_SHELL
  nt_n=0
  while [ ! -s "$NT_D/pid" ] && [ ! -e "$NT_D/exit" ] && [ $nt_n -lt 300 ]; do
    sleep 0.02 2> /dev/null || sleep 1
    nt_n=$((nt_n + 1))
  done
  nt_tell_state
}
nt_submit() {
  printf '%s\n' "$NT_SCHEDULER" > "$NT_D/submitted"
  nt_world
  eval "set -- $NT_BATCH_ARGS"
  if nt_id=$("nt_${NT_SCHEDULER}_submit" "$@"); then
    printf '%s\n' "$nt_id" > "$NT_D/queued.tmp" && mv "$NT_D/queued.tmp" "$NT_D/queued"
    nt_tell_state
  else
    nt_say "rejected $(printf '%s' "$nt_id" | nt_flat)"
    nt_drop
  fi
}
nt_follow() {
  nt_fresh=$NT_ONCE nt_off=$NT_OFF nt_beat=0 nt_look=0 nt_ask=0 nt_asked=0 nt_told=
  while :; do
    nt_state "$NT_J"
    read -r nt_base 2> /dev/null < "$NT_D/base" || nt_base=0
    nt_have=$(nt_size "$NT_D/log")
    nt_end=$((nt_base + ${nt_have:-0}))
    if [ "$nt_off" -lt "$nt_base" ]; then
      nt_say "gap $nt_off $((nt_base - nt_off))"
      nt_off=$nt_base
    fi
    nt_len=$((nt_end - nt_off))
    if [ $nt_len -gt 67108864 ]; then # a flood: what is read later than it comes, no stop overtakes
      nt_say "gap $nt_off $((nt_len - 8388608))"
      nt_off=$((nt_end - 8388608)) nt_len=8388608
    fi
    if [ $nt_len -gt 0 ]; then
      [ $nt_len -le 1048576 ] || nt_len=1048576
      nt_say "data $nt_off $nt_len"
      nt_chunk "$NT_D/log" $((nt_off - nt_base)) $nt_len
      nt_off=$((nt_off + nt_len)) nt_beat=0
      [ $nt_off = $nt_end ] || continue
    fi
    if [ -n "$nt_fresh" ] && { [ "$nt_off" -gt 0 ] || nt_launched; }; then nt_fresh=; nt_say began; fi
    if [ -n "$NT_SCHEDULER" ]; then
      if [ $nt_ask -le 0 ]; then
        nt_ask=$NT_POLL nt_asked=$((nt_asked + 1))
        [ $nt_asked -lt 120 ] || nt_ask=$((NT_POLL * 12)) # after ten minutes, once a minute
        if "nt_${NT_SCHEDULER}_queue" "$NT_J" "$NT_D" && [ "$NT_QUEUE" != "$nt_told" ]; then nt_told=$NT_QUEUE; nt_say "queue $NT_QUEUE"; fi
      fi
      nt_ask=$((nt_ask - 1))
    fi
    case $NT_STATE in
    running | starting) ;;
    *)
      [ "$(nt_size "$NT_D/log")" = "${nt_have:-}" ] || continue
      [ -z "$nt_told" ] || "nt_${NT_SCHEDULER}_last_word"
      nt_say "state $NT_STATE"
      return ;;
    esac
    nt_doze
    nt_beat=$((nt_beat + 1)) nt_look=$((nt_look + 1))
    if [ $nt_beat -ge 15 ]; then nt_beat=0; nt_say hb || exit; fi
    if [ $nt_look -ge 45 ]; then
      nt_look=0
      nt_word=$(cat "$NT_D/still" 2> /dev/null || nt_still) && nt_say "still $nt_word"
    fi
  done
}
nt_launched() { # whether nsys has come to its program; that one may live for a moment only
  for nt_path in $(grep -ls '^nsys-launcher' /proc/[0-9]*/comm); do
    ! tr '\0' '\n' 2> /dev/null < "${nt_path%comm}environ" | grep -qx "NSYS_TUI_JOB=$NT_J" || return 0
  done
  return 1
}
nt_whole() { # a short job from its start to the files that it makes, in one request
  nt_start > /dev/null
  nt_follow
  nt_each nt_file
}
nt_ending() { # whether nsys is there without its program, as before it and after it
  if read -r nt_ticks nt_others nt_stopped 2> /dev/null < "$NT_D/still"; then [ "$nt_others" = 0 ]
  else nt_still > /dev/null && [ $nt_others = 0 ] && [ $nt_own != 0 ]; fi
}
nt_signal() {
  nt_state "$NT_J"
  case $NT_STATE in running | starting) ;; *) nt_say "state $NT_STATE"; return ;; esac
  nt_all=$(nt_marked) # nsys gives its program a session of its own, which no signal to the job's group reaches
  # shellcheck disable=SC2086
  [ -z "$nt_all" ] || [ -n "$NT_SCHEDULER" ] || kill -CONT $nt_all 2> /dev/null # what was stopped hears nothing
  if [ $NT_SIG$NT_FORCE = INTno ] && nt_ending; then return; fi # it would throw away what it collected
  if [ -n "$NT_SCHEDULER" ]; then
    "nt_${NT_SCHEDULER}_signal"
    case $?:$NT_SIG in *:KILL | 1:*) ;; *) return 0 ;; esac # its client alone, signalled, would lose the report
  fi
  if read -r nt_pid nt_began nt_boot_id < "$NT_D/pid" 2> /dev/null && nt_alive "$nt_pid" "$nt_began" "$nt_boot_id"; then
    kill "-$NT_SIG" "-$nt_pid" && nt_say "signalled $NT_SIG $nt_pid"
    # shellcheck disable=SC2086
    [ $NT_SIG = INT ] || [ -z "$nt_all" ] || kill "-$NT_SIG" $nt_all 2> /dev/null
  fi
}
nt_left() { # what is still there; what has a name that begins with NT_ONLY gets the signal NT_SIG
  for nt_pid in $(nt_marked); do
    read -r nt_name 2> /dev/null < "/proc/$nt_pid/comm" || continue
    nt_say "left $nt_pid $nt_name"
    case $nt_name in "$NT_ONLY"*) [ -z "$NT_SIG" ] || kill "-$NT_SIG" "$nt_pid" 2> /dev/null ;; esac
  done
}
nt_file() {
  if [ -f "$1" ] && [ -r "$1" ]; then nt_say "file $(nt_size "$1") $(nt_mtime "$1") $1"
  else nt_say "missing $1"; fi
}
nt_each() { # runs the function $1 for each line of NT_PATHS
  while IFS= read -r nt_path; do
    [ -z "$nt_path" ] || "$1" "$nt_path" < /dev/null
  done << NT_END
$NT_PATHS
NT_END
}
nt_scan() { # reports that nobody named: in the job's folder, and new ones where the output was to go
  for nt_path in "$NT_D"/*.nsys-rep "$NT_D"/*.qdrep "$NT_D"/*.qdstrm; do
    [ ! -f "$nt_path" ] || nt_file "$nt_path"
  done
  if [ -n "$NT_OUT_NAME" ]; then
    case $NT_OUT_DIR in /*) ;; *) NT_OUT_DIR=$NT_CWD_ABS/$NT_OUT_DIR ;; esac
    find "$NT_OUT_DIR/." ! -name . -prune -type f -newer "$NT_D/run.sh" \( -name "$NT_OUT_NAME.nsys-rep" \
      -o -name "$NT_OUT_NAME.[0-9]*.nsys-rep" -o -name "$NT_OUT_NAME.qdrep" -o -name "$NT_OUT_NAME.qdstrm" \) 2> /dev/null | while IFS= read -r nt_path; do
      nt_file "$nt_path"
    done
  fi
}
nt_hash_of() { nt_say "hash $(nt_hash "$1") $1"; }
nt_send() { # bytes and, meanwhile, their hash; NT_PATHS is absolute, so it is no option of cat or tail
  if [ ! -f "$NT_PATHS" ] || [ ! -r "$NT_PATHS" ]; then nt_say "missing $NT_PATHS"; return; fi
  nt_say "bytes $(($(nt_size "$NT_PATHS") - NT_OFF))"
  exec 3>&1 # the bytes go past the substitution that catches the hash
  nt_sum=$(
    nt_rest >&3 &
    [ "$NT_SUM" != yes ] || nt_hash "$NT_PATHS"
    wait
  )
  nt_say "sent $(nt_size "$NT_PATHS") $(nt_mtime "$NT_PATHS") $nt_sum"
}
nt_rest() { if [ "$NT_OFF" = 0 ]; then cat "$NT_PATHS"; else tail -c "+$((NT_OFF + 1))" "$NT_PATHS"; fi; } # cat is faster
nt_list() {
  case $NT_PATHS in '~') NT_PATHS=$HOME ;; '~/'*) NT_PATHS=$HOME/${NT_PATHS#'~/'} ;; esac
  CDPATH='' cd -- "${NT_PATHS:-.}" 2> /dev/null || { nt_say "missing $NT_PATHS"; return; }
  nt_say "dir $(pwd)"
  nt_n=0
  for nt_path in * .[!.]*; do
    [ -e "$nt_path" ] || continue
    nt_n=$((nt_n + 1))
    [ $nt_n -le 2000 ] || { nt_say more; return; }
    case $nt_path in *'
'*) continue ;; esac
    if [ -d "$nt_path" ]; then nt_say "entry d 0 0 $nt_path"
    else case $nt_path in
      *.nsys-rep | *.qdrep | *.sqlite | *.qdstrm)
        nt_say "entry f $(nt_size "./$nt_path") $(nt_mtime "./$nt_path") $nt_path" ;;
      esac
    fi
  done
}
nt_where() { # a path as typed -> absolute
  case $NT_PATHS in '~/'*) NT_PATHS=$HOME/${NT_PATHS#'~/'} ;; /*) ;; *) NT_PATHS=$PWD/$NT_PATHS ;; esac
  nt_file "$NT_PATHS"
}
nt_guard() { # only a folder of our own making is ever removed
  case $NT_J in '' | *[!A-Za-z0-9-]* | -*) nt_say "error refused to remove $NT_J"; return 1 ;; esac
  [ -d "$NT_D" ] && [ ! -h "$NT_D" ] && [ -f "$NT_D/run.sh" ] || { nt_say "error no job folder $NT_D"; return 1; }
}
nt_contents() {
  nt_guard || return
  find "$NT_D" -type f 2> /dev/null | while IFS= read -r nt_path; do nt_file "$nt_path"; done
}
nt_clean() {
  nt_guard || return
  nt_state "$NT_J"
  case $NT_STATE in running | starting) nt_say "state $NT_STATE"; return ;; esac
  rm -rf -- "$NT_D" && nt_say "cleaned $NT_D"
  [ "$(cat "$NT_B/lock.$NT_T" 2> /dev/null)" != "$NT_J" ] || rm -f "$NT_B/lock.$NT_T"
}

# --- preflight
nt_free() { nt_say "$1 $(df -Pk "$2" 2> /dev/null | tail -n 1 | sed 's/%.*//' | while read -r nt_a nt_b nt_c nt_d nt_e; do echo "$((nt_d * 1024))"; done)"; }
nt_git() {
  nt_has git && [ -n "$NT_CWD_ABS" ] || return 0
  nt_say "git $(cd "$NT_CWD_ABS" && git rev-parse HEAD 2> /dev/null)"
  nt_say "git_dirty $(cd "$NT_CWD_ABS" && git status --porcelain -uno 2> /dev/null | head -n 1 | cut -c1-2)"
}
nt_probe() {
  nt_say "host $(uname -n)"
  nt_say "system $(uname -sm)"
  nt_say "user $(id -un 2> /dev/null || id -u)"
  nt_say "uid $(id -u)"
  nt_say "clock $(date +%s)"
  nt_say "paranoid $(cat /proc/sys/kernel/perf_event_paranoid 2> /dev/null)"
  nt_say "gpu_admin_only $(sed -n 's/^RmProfilingAdminOnly: //p' /proc/driver/nvidia/params 2> /dev/null)"
  nt_tools=
  for nt_tool in setsid perl python3 sha256sum shasum openssl timeout stat bash git; do
    ! nt_has $nt_tool || nt_tools="$nt_tools $nt_tool"
  done
  nt_say "tools$nt_tools"
  head -c 0 < /dev/null > /dev/null 2>&1 && nt_say "head yes"
  if mkdir -p "$NT_B" 2> /dev/null && [ -w "$NT_B" ]; then
    nt_say "jobs $(CDPATH='' cd -- "$NT_B" && pwd)"
    nt_free free "$NT_B"
  else nt_say "jobs_bad $NT_B"; fi
  if [ -n "$NT_CWD_ABS" ]; then
    nt_say "cwd $NT_CWD_ABS"
    if [ -w "$NT_CWD_ABS" ]; then nt_free cwd_free "$NT_CWD_ABS"; else nt_say cwd_readonly; fi
    nt_git & # meanwhile: a large tree takes it a while
  else nt_say "cwd_missing $NT_CWD"; fi
  nt_holder=$(cat "$NT_B/lock.$NT_T" 2> /dev/null)
  case $nt_holder in '' | *[!A-Za-z0-9-]*) ;; *)
    nt_state "$nt_holder"
    case $NT_STATE in running | starting) nt_say "locked $nt_holder $(cat "$NT_B/$nt_holder/owner" 2> /dev/null | nt_flat)" ;; esac ;;
  esac
  nt_probe_nsys
  wait
}
nt_probe_nsys() { # in the shell and with the preamble that the program will have
  nt_script=$NT_B/.probe.$$
  if ! printf '%s\n' "$NT_FIND" 2> /dev/null > "$nt_script"; then
    rm -f "$nt_script"
    nt_say "jobs_bad $NT_B"
    return
  fi
  # shellcheck disable=SC2086
  nt_limit 60 $NT_SHELL "$nt_script" 2> "$nt_script.err" < /dev/null | sed -n 's/^@@p //p' | while IFS= read -r nt_line; do
    nt_say "$nt_line"
  done
  nt_say "stderr $(tail -n 3 "$nt_script.err" | nt_flat)"
  rm -f "$nt_script" "$nt_script.err"
}

NT_WORLD= NT_BOOT=none
read -r NT_BOOT 2> /dev/null < /proc/sys/kernel/random/boot_id || :
eval "$NT_SCHEDULERS" # the functions nt_NAME_queue, _state, _submit, _signal and _last_word
nt_say "hello 1 $NT_NONCE"
case $NT_B in '~') NT_B=$HOME ;; '~/'*) NT_B=$HOME/${NT_B#'~/'} ;; esac
case $NT_CWD in '~' | '') NT_CWD=$HOME ;; '~/'*) NT_CWD=$HOME/${NT_CWD#'~/'} ;; esac
NT_CWD_ABS=$(CDPATH='' cd -- "$NT_CWD" 2> /dev/null && pwd)
NT_D=$NT_B/$NT_J
NT_SHELL=sh
if [ "$NT_LOGIN" = yes ]; then if nt_has bash; then NT_SHELL='bash -l'; else NT_SHELL='sh -l'; fi; fi
{
  case $NT_MODE in
  hello) ;;
  probe) nt_probe ;;
  start)
    nt_git &
    nt_start
    wait ;;
  follow) nt_follow ;;
  whole) nt_whole ;;
  status) nt_tell_state ;;
  signal) nt_signal ;;
  left) nt_left ;;
  files) nt_each nt_file ;;
  hash) nt_each nt_hash_of ;;
  where) nt_where ;;
  scan) nt_scan ;;
  send) nt_send ;;
  list) nt_list ;;
  contents) nt_contents ;;
  clean) nt_clean ;;
  *) nt_say "error unknown verb $NT_MODE" ;;
  esac
} < /dev/null
nt_say end
exit 0
