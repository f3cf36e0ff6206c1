# Lies in the folder of one job and keeps it: starts it in a session of its own, away from the
# connection, and writes down its exit status whatever happens to the connection.
# Arguments: job folder, lock file, bytes of log to keep, stage, the shell for run.sh.
NT_D=$1 NT_J=${1##*/} NT_L=$2 NT_LIMIT=$3 NT_STAGE=$4
cd "$NT_D" || exit 74
new_session() {
  if command -v setsid > /dev/null 2>&1; then setsid "$@"
  elif command -v perl > /dev/null 2>&1; then
    perl -e 'use POSIX (); POSIX::setsid(); exec @ARGV; exit 127' -- "$@"
  else python3 -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])' "$@"; fi
}
boot_id() { cat /proc/sys/kernel/random/boot_id 2> /dev/null || echo none; }
start_time() {
  [ -r "/proc/$1/stat" ] || { echo 0; return; }
  read -r nt_stat < "/proc/$1/stat"
  nt_stat=${nt_stat##*) }
  # shellcheck disable=SC2086
  set -- $nt_stat
  echo "${20}"
}
look_after() { # keeps the log small; it is opened for appending, so cutting it leaves no hole
  while sleep 5 && kill -0 $$ 2> /dev/null; do # $$ is the keeper, also in a subshell
    if [ "$NT_STAGE" = batch ]; then nt_still > still.tmp && mv still.tmp still || rm -f still; fi
    nt_size=$(wc -c < log)
    [ "$nt_size" -gt "$NT_LIMIT" ] || continue
    echo $(($(cat base 2> /dev/null || echo 0) + nt_size)) > base.tmp
    : > log
    mv base.tmp base
  done
}
run() { # what the program writes has the permissions that it has without us
  umask "$(cat umask)"
  exec "$@" ./run.sh
}
finish() {
  kill "$nt_watcher" 2> /dev/null
  printf '%-8s\n' "$1" 1<> exit.tmp # its block was taken at the start: a full disk cannot lose it
  mv exit.tmp exit
  [ "$(cat "$NT_L" 2> /dev/null)" != "$NT_J" ] || rm -f "$NT_L"
}
case $NT_STAGE in
launch)
  shift 4
  # a shell starts background jobs with SIGINT ignored, and what is ignored stays so over exec
  nt_default_int=
  if env --default-signal=INT true 2> /dev/null; then nt_default_int='env --default-signal=INT,QUIT'; fi
  # in brackets: a function's own redirection leaves the shell around it the connection's streams
  (new_session $nt_default_int sh ./wrap.sh "$NT_D" "$NT_L" "$NT_LIMIT" keep "$@") > /dev/null 2>&1 < /dev/null &
  ;;
keep)
  shift 4
  printf '%-8s\n' '' > exit.tmp
  look_after > /dev/null 2>&1 < /dev/null &
  nt_watcher=$!
  # a session of its own again: a signal to the job's group must not end this shell
  new_session sh ./wrap.sh "$NT_D" "$NT_L" "$NT_LIMIT" lead "$@" >> log 2>&1 < /dev/null
  finish $?
  ;;
lead)
  shift 4
  printf '%s %s %s\n' $$ "$(start_time $$)" "$(boot_id)" 1<> pid.tmp
  mv pid.tmp pid
  run "$@"
  ;;
batch)
  shift 4
  printf '%-8s\n' '' > exit.tmp
  trap : INT TERM
  look_after > /dev/null 2>&1 < /dev/null &
  nt_watcher=$!
  (run "$@") >> log 2>&1 < /dev/null
  finish $?
  ;;
esac
