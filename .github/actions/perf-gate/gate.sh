#!/usr/bin/env bash
# Captures a program a few times and compares the runs with those in a baseline file.
#
# Everything comes from the environment, so that no value is ever read as shell:
#   PERF_COMMAND       what to profile, for bash; empty: PERF_REPORTS are compared
#   PERF_REPORTS       reports, one a line
#   PERF_RUNS          captures (3)
#   PERF_TRACE         what nsys traces (cuda,nvtx)
#   PERF_BASELINE      file of earlier runs (perf/base.json)
#   PERF_GATES         limits of compare --gate, one a line (3%)
#   PERF_INCONCLUSIVE  fail or pass (fail): whether "cannot tell" fails the job
#   PERF_UPDATE        true: the runs are added to the baseline file, and nothing is compared
#   PERF_OUT           folder for reports, compare.json, summary.md and junit.xml (perf-results)
# Ends as nsys-tui compare does: 0 fine, 1 worse, 2 not comparable, 3 inconclusive.
set -euo pipefail

out=${PERF_OUT:-perf-results}
baseline=${PERF_BASELINE:-perf/base.json}
mkdir -p "$out"
rm -f "$out/compare.json" "$out/summary.md" "$out/junit.xml"  # of the job before
if [[ -n ${GITHUB_OUTPUT:-} ]]; then
  echo "results=$out" >>"$GITHUB_OUTPUT"  # also where runs are only added: the folder is uploaded
fi

reports=()
if [[ -n ${PERF_COMMAND:-} ]]; then
  for ((run = 1; run <= ${PERF_RUNS:-3}; run++)); do
    reports+=("$(nsys-tui capture --batch --propagate --trace "${PERF_TRACE:-cuda,nvtx}" \
      -o "$PWD/$out/run-$run" --force-overwrite=true -- bash -c "$PERF_COMMAND")")
  done
else
  mapfile -t reports < <(grep . <<<"${PERF_REPORTS:-}")
fi
if ((${#reports[@]} == 0)); then
  echo "perf-gate: neither a command to profile nor reports were given" >&2
  exit 64
fi

if [[ ${PERF_UPDATE:-false} == true ]]; then
  mkdir -p "$(dirname "$baseline")"
  for report in "${reports[@]}"; do
    nsys-tui baseline add --file "$baseline" "$report"
  done
  exit 0
fi

gates=()
while IFS= read -r gate; do
  [[ -z $gate ]] || gates+=(--gate "$gate")
done <<<"${PERF_GATES-3%}"

status=0
: >"$out/summary.md"
nsys-tui compare "${reports[@]}" --baseline-file "$baseline" ${gates[@]+"${gates[@]}"} \
  --inconclusive "${PERF_INCONCLUSIVE:-fail}" --force-overwrite --junit "$out/junit.xml" \
  --step-summary "$out/summary.md" --format json >"$out/compare.json" || status=$?
cat "$out/summary.md"
if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then
  cat "$out/summary.md" >>"$GITHUB_STEP_SUMMARY"
fi
if [[ -n ${GITHUB_OUTPUT:-} ]]; then
  echo "exit-code=$status" >>"$GITHUB_OUTPUT"
fi
exit "$status"
