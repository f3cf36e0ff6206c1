# Which processes belong to the job NT_J in the folder NT_D, as this machine sees them.
nt_marked() { # numbers of the processes that carry the job's mark
  if printf 'a\0' | grep -qzx a 2> /dev/null; then
    grep -lzx "NSYS_TUI_JOB=$NT_J" /proc/[0-9]*/environ 2> /dev/null | sed 's|^/proc/\([0-9]*\)/.*|\1|'
  else
    for nt_proc in /proc/[0-9]*; do
      ! tr '\0' '\n' < "$nt_proc/environ" 2> /dev/null | grep -qx "NSYS_TUI_JOB=$NT_J" || echo "${nt_proc#/proc/}"
    done
  fi
}
nt_is_nsys() { case $1 in nsys* | Qdstrm*) ;; *) return 1 ;; esac; }
nt_still() { # prints processor time of the job's processes, how many are its program's, and which one of nsys's a signal has stopped (0: none); fails where none is nsys's
  nt_ticks=0 nt_others=0 nt_own=0 nt_led=0 nt_stopped=0
  nt_marks=" $(nt_marked | tr '\n' ' ')"
  read -r nt_lead nt_rest 2> /dev/null < "$NT_D/pid" || nt_lead=
  nt_sessions=" $nt_lead "
  for nt_pid in $nt_marks; do # a program may lose its mark, and seldom leaves the session of nsys
    read -r nt_stat 2> /dev/null < "/proc/$nt_pid/stat" && nt_is_nsys "${nt_stat#*\(}" || continue
    # shellcheck disable=SC2086
    set -- ${nt_stat##*) }
    nt_sessions="$nt_sessions$4 "
  done
  while IFS= read -r nt_stat; do
    nt_name=${nt_stat#*\(}
    nt_name=${nt_name%\)*}
    # shellcheck disable=SC2086
    set -- ${nt_stat%% *} ${nt_stat##*) }
    case $nt_marks:$nt_sessions in *" $1 "*:* | *:*" $5 "*) ;; *) continue ;; esac
    case $2$nt_name in Tnsys* | TQdstrm*) nt_stopped=$1 ;; esac
    case $2$nt_name in Z* | ?srun | ?slurmstepd | ?mpirun* | ?mpiexec* | ?hydra_* | ?orted | ?orterun | ?prte*) continue ;; esac # what starts ranks waits
    if nt_is_nsys "$nt_name"; then nt_own=$((nt_own + 1)); elif [ "$1" = "$nt_lead" ]; then nt_led=1; else nt_others=$((nt_others + 1)); fi
    nt_ticks=$((nt_ticks + ${13} + ${14}))
  done << NT_END
$(cat /proc/[0-9]*/stat 2> /dev/null)
NT_END
  [ $nt_own$nt_led != 00 ] && echo "$nt_ticks $nt_others $nt_stopped"
}
