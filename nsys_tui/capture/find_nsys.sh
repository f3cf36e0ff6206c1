# Runs after the preamble, in the program's own shell: which nsys is there, and what can it do.
# NSYS is "auto" or a path, TOOLS what launchers call, THOROUGH asks for nsys's own view of the machine as well; answers are lines that start with "@@p ".
nt_p() { printf '@@p %s\n' "$*"; }
nt_limit= # nsys may hang, and may pass over TERM then
if timeout -k 1 1 true 2> /dev/null; then nt_limit='timeout -k 1 10'
elif timeout 1 true 2> /dev/null; then nt_limit='timeout 10'; fi
nt_run() { $nt_limit "$@" < /dev/null 2>&1; }
nt_over() { [ "$1" = 124 ] || [ "$1" = 137 ] || [ "$1" = 143 ]; } # statuses of what was ended by then
nt_tell() { # key, words for nsys: its answer line by line, and a word where none comes
  nt_key=$1
  shift
  nt_said=$(nt_run "$nt_found" "$@")
  ! nt_over $? || nt_p "mute nsys $*"
  printf '%s\n' "$nt_said" | sed -n "1,3000s/^/@@p $nt_key /p"
}
nt_tools=
for nt_try in $TOOLS; do
  ! command -v "$nt_try" > /dev/null 2>&1 || nt_tools="$nt_tools $nt_try"
done
nt_p "launching$nt_tools"
nt_found=
case $NSYS in
auto)
  nt_found=$(command -v nsys 2> /dev/null)
  if [ -z "$nt_found" ]; then
    for nt_try in /usr/local/cuda*/bin/nsys /usr/local/cuda*/nsight-systems*/bin/nsys "${CUDA_HOME:-/usr/local/cuda}/bin/nsys" \
      /opt/nvidia/nsight-systems*/bin/nsys /opt/nvidia/nsight-systems*/*/bin/nsys /opt/nvidia/nsight-systems*/*/target-linux-x64/nsys; do
      if [ -x "$nt_try" ] && [ ! -d "$nt_try" ]; then nt_found=$nt_try; fi # the last one is the newest
    done
  fi ;;
'~/'*) nt_found=$HOME/${NSYS#'~/'} ;;
*/*) nt_found=$NSYS ;;
*) nt_found=$(command -v "$NSYS" 2> /dev/null) ;;
esac
if [ -d "$nt_found" ]; then
  for nt_try in nsys bin/nsys target-linux-x64/nsys; do
    [ ! -x "$nt_found/$nt_try" ] || { nt_found=$nt_found/$nt_try; break; }
  done
fi
if [ -n "$nt_found" ] && [ -x "$nt_found" ] && [ ! -d "$nt_found" ]; then
  nt_p "nsys $nt_found"
  for nt_try in 1 2; do
    nt_said=$(nt_run "$nt_found" --version)
    nt_status=$?
    nt_over $nt_status || break
    [ $nt_try = 1 ] || { nt_p "hangs yes"; exit; }
  done
  case $nt_status in
  126 | 127) nt_p "broken $(printf '%s\n' "$nt_said" | head -n 1)" ;;
  *)
    nt_line=$(printf '%s\n' "$nt_said" | grep '[0-9]\{4\}\.[0-9]' | head -n 1)
    nt_p "version ${nt_line:-$(printf '%s\n' "$nt_said" | head -n 1)}"
    nt_tell help profile --help
    [ "$THOROUGH" != yes ] || nt_tell status status -e ;;
  esac
else
  nt_p "no_nsys $nt_found"
fi
nt_tmp=${TMPDIR:-/tmp}
nt_p "tmp_free $(df -Pk "$nt_tmp" 2> /dev/null | tail -n 1 | sed 's/%.*//' | { read -r nt_a nt_b nt_c nt_d nt_e; echo "$nt_d"; }) $nt_tmp"
nt_p "path $PATH"
