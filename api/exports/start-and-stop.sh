# Common part of scripts that start machines: watches the run, and ends all machines on every exit. The functions
# machines_left, teardown, by_hand and read_exit_status differ by cloud and are defined above.
WORK="$(mktemp -d)"
STARTED=""       # empty until the first machine may exist
INTERRUPTIBLE="" # set where taken_back and ask_again are defined, and the place's machines may be taken back

say() { echo "gpuplan: $*" >&2; }

# A signal ends the wait, not only the sleep.
pause() {
  sleep "$1" &
  wait "$!"
}

# shellcheck disable=SC2329
finish() {
  local status="$?"
  trap - EXIT
  trap '' INT TERM HUP
  if [ -n "$STARTED" ]; then
    say "ending everything that $RUN started"
    if ! teardown; then
      say "TEARDOWN FAILED: machines of $RUN may still run, at $USD_PER_HOUR USD per hour. Run this until it succeeds:"
      by_hand >&2
      status=70
    fi
    if [ "$status" -ne 0 ]; then say "To go on from the newest checkpoint in $CHECKPOINTS: $RESUME"; fi
  fi
  rm -rf "$WORK"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# From here on, everything of the run is ended on exit.
begin() {
  STARTED="$(date +%s)"
  say "$RUN: the run limit is $((LIMIT_SECONDS / 60)) minutes, which costs at most $USD_AT_LIMIT USD. Ctrl-C ends it."
  say "This ends it from elsewhere:"
  by_hand >&2
}

ended() {
  local status
  status="$(read_exit_status)" || status=""
  if [[ ! $status =~ ^[0-9]{1,3}$ ]]; then status=""; fi
  if [ -n "$INTERRUPTIBLE" ] && taken_back "$status"; then ask_again; fi
  if [ -z "$status" ]; then
    say "$RUN has ended, but its exit status cannot be read: see $CHECKPOINTS/.runs/$RUN"
    exit 1
  fi
  if [ "$status" -eq 0 ]; then say "$RUN has finished"; else say "$RUN has failed with status $status: see $CHECKPOINTS/.runs/$RUN"; fi
  exit "$status"
}

# Machines end with their part of the run. If some have ended and others have not, the others hang.
watch_run() {
  local left minutes_with_fewer=0
  while
    pause 60
    [ "$(date +%s)" -lt $((STARTED + LIMIT_SECONDS + 600)) ]
  do
    if ! left="$(machines_left)"; then
      say "cannot ask which machines run; asking again in a minute"
      continue
    fi
    if [ "$left" -eq 0 ]; then ended; fi
    if [ "$left" -lt "$NODES" ]; then minutes_with_fewer=$((minutes_with_fewer + 1)); else minutes_with_fewer=0; fi
    if [ -n "$INTERRUPTIBLE" ] && [ "$minutes_with_fewer" -gt 2 ] && taken_back 1; then ask_again; fi
    if [ "$minutes_with_fewer" -gt 20 ]; then
      if [ -n "$INTERRUPTIBLE" ]; then ask_again; fi
      say "only $left of $NODES machines are left, and they do not end"
      exit 1
    fi
  done
  say "the run limit has passed and machines still run"
  exit 75
}

