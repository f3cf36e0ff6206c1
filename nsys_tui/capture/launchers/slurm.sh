# What the supervisor asks of Slurm; it calls these functions, and they use its own.
nt_slurm_queue() { # job id, folder; sets NT_QUEUE to "id|STATE|reason|nodes", empty = unknown to Slurm; fails with the fault in it
  nt_world
  nt_id=$(cat "$2/queued" 2> /dev/null)
  if [ -n "$nt_id" ]; then
    NT_QUEUE=$(nt_there 20 squeue -h -t all -j "$nt_id" -o '%i|%T|%r|%N' 2>&1) && [ -n "$NT_QUEUE" ] || {
      case $NT_QUEUE in
      *"nvalid job id"* | '') NT_QUEUE=$(nt_there 20 scontrol show job -o "$nt_id" 2> /dev/null | sed -n \
        's/^JobId=\([0-9]*\).* JobState=\([A-Z_]*\) Reason=\([^ ]*\).* NodeList=\([^ ]*\).*/\1|\2|\3|\4/p') ;;
      *) return 1 ;;
      esac
    }
  else
    NT_QUEUE=$(nt_there 20 squeue -h -t all -n "nt-$1" -o '%i|%T|%r|%N' 2>&1) || return 1
  fi
  NT_QUEUE=$(printf '%s\n' "$NT_QUEUE" | grep -F '|' | head -n 1)
}
nt_slurm_state() { # job id, folder
  NT_STATE=running
  nt_slurm_queue "$1" "$2" || return 0
  case $NT_QUEUE in
  *'|PENDING|'* | *'|RUNNING|'* | *'|COMPLETING|'* | *'|CONFIGURING|'* | *'|SUSPENDED|'* | *'|REQUEUE'* | *'|RESIZING|'* | *'|STAGE_OUT|'* | *'|SIGNALING|'*) return 0 ;;
  esac
  for nt_try in 1 2 3 4 5; do # the exit file may arrive late on a shared file system
    nt_exit_of "$2" && return 0
    sleep 1
  done
  NT_STATE=lost
}
nt_slurm_submit() { # arguments of sbatch; prints the job's id, or why there is none and fails
  nt_out=$(nt_there 100 sbatch --parsable "$@" "--job-name=nt-$NT_J" "--output=$NT_D/log" --open-mode=append "$NT_D/batch.sh" 2>&1)
  nt_rc=$?
  nt_id=$(printf '%s\n' "$nt_out" | sed -n 's/^\([0-9][0-9]*\)\(;.*\)*$/\1/p' | tail -n 1)
  if [ $nt_rc = 0 ] && [ -n "$nt_id" ]; then printf '%s\n' "$nt_id"; else printf '%s\n' "$nt_out"; return 1; fi
}
nt_slurm_last_word() { # what the queue says once it has noticed the end
  for nt_try in 1 2 3 4 5 6 7 8 9 10; do
    nt_slurm_queue "$NT_J" "$NT_D" || return 0
    case $NT_QUEUE in *'|RUNNING|'* | *'|COMPLETING|'*) nt_nap; nt_nap ;; *) break ;; esac
  done
  [ -z "$NT_QUEUE" ] || nt_say "queue $NT_QUEUE"
}
nt_slurm_signal() { # 1 = Slurm knows no such job, 2 = it did not take the signal
  nt_slurm_queue "$NT_J" "$NT_D" || { nt_slurm_deaf "$NT_QUEUE"; return 2; }
  nt_id=${NT_QUEUE%%|*}
  [ -n "$nt_id" ] || return 1
  nt_out=$(case "$NT_QUEUE $NT_SIG" in
  *'|PENDING|'*) nt_there 20 scancel "$nt_id" ;;
  *INT) nt_there 20 scancel "--signal=INT" "$nt_id" ;;
  *TERM) nt_there 20 scancel "$nt_id" ;;
  *)
    nt_rc=0
    nt_there 20 scancel --signal=KILL --full "$nt_id" || nt_rc=1
    nt_there 20 scancel "$nt_id" || [ $nt_rc = 0 ] ;; # it may have ended at once
  esac 2>&1) || { nt_slurm_deaf "$nt_out"; return 2; }
  nt_say "signalled $NT_SIG $nt_id"
}
nt_slurm_deaf() { nt_say "unheard $(printf '%s' "${1:-no answer}" | nt_flat)"; }
