# Asks for the machines in the places of the plan's capacity ladder, in order, each for TRY_SECONDS, and ends what a place
# gave in part before it asks again. use_place and start_1, start_2, ... are defined below.
obtain() {
  local number until status
  for ((number = 1; number <= $1; number++)); do
    use_place "$number"
    say "asking for $NODES machines, $PLACE"
    until=$(($(date +%s) + TRY_SECONDS))
    begin
    while :; do
      # No condition, or bash would go on after a failure inside.
      set +e
      (
        set -e
        "start_$number"
      )
      status="$?"
      set -e
      if [ "$status" -eq 0 ]; then return; fi
      if [ "$status" -eq 78 ]; then break; fi
      say "not obtained, $PLACE (status $status): ending what was started there"
      teardown || exit 1
      STARTED=""
      if [ "$(date +%s)" -ge "$until" ]; then break; fi
      pause 60
      STARTED="$(date +%s)"
    done
    STARTED=""
  done
  say "no place gave $NODES machines"
  exit 69
}

