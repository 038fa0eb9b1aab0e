# Asks for the machines in the places of the plan's capacity ladder, in order, each for TRY_SECONDS, and ends what a place
# gave in part before it asks again. Until LAST_BY (0: once) all but the last choice of the ladder are asked for again in
# turn. use_place and start_1, start_2, ... are defined below. Work that was kept before a preemption moves LAST_BY.
RAN="${GPUPLAN_RAN_SECONDS:-0}"
LAST_BY="$((LAST_BY + (LAST_BY > 0 ? ${GPUPLAN_KEPT_SECONDS:-0} : 0)))"
LIMIT_SECONDS="$((LIMIT_SECONDS - RAN))"

is_late() { [ "$LAST_BY" -gt 0 ] && [ "$(date +%s)" -ge "$LAST_BY" ]; }

# obtain COUNT LAST: LAST is COUNT if that place is the last choice of the ladder, or 0 if that has other machines.
obtain() {
  local number asked=yes obtained=""
  while [ -n "$asked" ]; do
    asked=""
    for ((number = 1; number <= $1; number++)); do
      if [ "$number" -eq "$2" ]; then continue; fi
      if [ "$2" -gt 0 ] && is_late; then break 2; fi
      ask_for "$number"
      if [ -n "$obtained" ]; then return; fi
    done
    if [ "$LAST_BY" -eq 0 ] || is_late; then break; fi
  done
  if [ "$2" -gt 0 ]; then ask_for "$2"; fi
  if [ -n "$obtained" ]; then return; fi
  say "no place gave $NODES machines"
  if [ "$2" -eq 0 ] && [ "$LAST_BY" -gt 0 ]; then say "it is time for the last choice of the plan's capacity ladder"; fi
  exit 69
}

# Sets `asked` where the place was asked at all, and `obtained`. Never called in a condition, or bash would go on after a
# failure inside.
ask_for() {
  local until status
  use_place "$1"
  say "asking for $NODES machines, $PLACE"
  until=$(($(date +%s) + TRY_SECONDS))
  begin
  while :; do
    set +e
    (
      set -e
      "start_$1"
    )
    status="$?"
    set -e
    if [ "$status" -eq 0 ]; then
      obtained=yes
      say "obtained, $PLACE. To have plans count it: $REPORT --obtained"
      return
    fi
    if [ "$status" -eq 78 ]; then break; fi
    asked=yes
    say "not obtained, $PLACE (status $status): ending what was started there"
    say "If the cloud had no machines (not a quota), have plans count it: $REPORT --refused CODE, its error code"
    teardown || exit 1
    STARTED=""
    if [ "$(date +%s)" -ge "$until" ]; then break; fi
    pause 60
    STARTED="$(date +%s)"
  done
  STARTED=""
}

# taken_back STATUS: whether the cloud took interruptible machines back. The script of a node says 143 if the node was told
# to end; without a word, machines count as taken back if they ran for a while.
# shellcheck disable=SC2329
taken_back() {
  local node
  case "$1" in 0) return 1 ;; 143) return 0 ;; esac
  for ((node = 0; node < NODES; node++)); do
    if [ "$(read_exit_status "$node" || true)" = 143 ]; then return 0; fi
  done
  [ -z "$1" ] && [ "$(date +%s)" -gt $((STARTED + TRY_SECONDS)) ]
}

# Ends what is left and starts this file again: from the first place, and from the newest checkpoint.
# shellcheck disable=SC2329
ask_again() {
  local ran=$(($(date +%s) - STARTED))
  local kept=$(((ran - LOST_SECONDS) * KEPT_PERCENT / 100))
  say "the machines were taken back after $((ran / 60)) minutes: asking again from the first place"
  if [ "$ran" -ge "$LIMIT_SECONDS" ]; then
    say "the run limit has passed"
    exit 75
  fi
  teardown || exit 1
  STARTED=""
  rm -rf "$WORK"
  export GPUPLAN_RAN_SECONDS=$((RAN + ran)) GPUPLAN_KEPT_SECONDS=$((${GPUPLAN_KEPT_SECONDS:-0} + (kept > 0 ? kept : 0)))
  exec bash "$0"
}

