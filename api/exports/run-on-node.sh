# The script of every node: resumes from the newest complete checkpoint, runs the command, and uploads checkpoints.
# It requests a last checkpoint before the run limit, and when the node is being stopped.
#
# A checkpoint is a file or a folder in $GPUPLAN_CHECKPOINT_DIR. It counts once its name does not end in .tmp: write
# NAME.tmp, wait for all ranks, rename it to NAME, on every node. In a bucket it is complete when all nodes have uploaded
# theirs. Times of the last checkpoint: GPUPLAN_SAVE_SECONDS to write it, the rest of GPUPLAN_GRACE_SECONDS to upload it.
set -uo pipefail

readonly NOT_CONFIGURED=78 STORE_FAILED=74 LIMIT_REACHED=75 TOLD_TO_END=143
readonly RCLONE_VERSION=1.68.2
NODE="${GPUPLAN_NODE:-${JOB_COMPLETION_INDEX:-${SLURM_NODEID:-0}}}"
NODES="${GPUPLAN_NODES:-1}"
RUN="${GPUPLAN_RUN:-$GPUPLAN_PLAN-phase-$GPUPLAN_PHASE}"
DIR="$GPUPLAN_CHECKPOINT_DIR"
REMOTE=""
GRACE="${GPUPLAN_GRACE_SECONDS:-900}"
SAVE="${GPUPLAN_SAVE_SECONDS:-600}"

say() { echo "gpuplan: $*" >&2; }

fail() {
  local status="$1"
  shift
  say "$*"
  exit "$status"
}

# Signals to all processes of a node must not interrupt a transfer.
store() { (trap '' TERM INT USR1 && RCLONE_CONFIG=/dev/null exec rclone --log-level ERROR "$@"); }

# The checksums are those of https://downloads.rclone.org/v1.68.2/SHA256SUMS.
need_rclone() {
  command -v rclone > /dev/null && return
  local bin="${HOME:-/tmp}/.gpuplan/bin"
  mkdir -p "$bin" && python3 - "$RCLONE_VERSION" "$bin/rclone" << 'PYTHON' || return 1
import hashlib, io, os, platform, sys, urllib.request, zipfile
version, target = sys.argv[1:]
known = {
    "x86_64": ("amd64", "0e6fa18051e67fc600d803a2dcb10ddedb092247fc6eee61be97f64ec080a13c"),
    "aarch64": ("arm64", "c6e9d4cf9c88b279f6ad80cd5675daebc068e404890fa7e191412c1bc7a4ac5f"),
}
arch, checksum = known[platform.machine()]
name = f"rclone-v{version}-linux-{arch}"
packed = urllib.request.urlopen(f"https://downloads.rclone.org/v{version}/{name}.zip", timeout=120).read()
if hashlib.sha256(packed).hexdigest() != checksum:
    sys.exit(f"gpuplan: the checksum of {name}.zip is not that of the release")
program = zipfile.ZipFile(io.BytesIO(packed)).read(f"{name}/rclone")
with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755), "wb") as file:
    file.write(program)
PYTHON
  PATH="$bin:$PATH"
}

# A note about this run, kept with the checkpoints: read_note NAME, write_note NAME TEXT.
read_note() {
  if [ -z "$REMOTE" ]; then
    cat "$DIR/.runs/$RUN/$1" 2> /dev/null || true
    return
  fi
  local status=0
  store cat "$REMOTE/.runs/$RUN/$1" || status=$?
  # rclone says 3 where there is none: https://rclone.org/docs/#exit-code
  [ "$status" -eq 0 ] || [ "$status" -eq 3 ]
}

write_note() {
  if [ -z "$REMOTE" ]; then
    mkdir -p "$DIR/.runs/$RUN" && echo "$2" > "$DIR/.runs/$RUN/$1"
    return
  fi
  echo "$2" | store rcat "$REMOTE/.runs/$RUN/$1"
}

# The newest checkpoint that all nodes have uploaded, by the number in its name.
newest_complete() {
  if [ -z "$REMOTE" ]; then
    for each in "$DIR"/*; do
      case "$each" in *.tmp) ;; *) [ -e "$each" ] && echo "${each##*/}" ;; esac
    done | sort -V | tail -n 1
    return
  fi
  local kept status=0 name part key
  local -A parts=()
  kept="$(store lsf --recursive --files-only "$REMOTE/.complete")" || status=$?
  [ "$status" -eq 3 ] && return
  [ "$status" -eq 0 ] || return "$status"
  while IFS=/ read -r name part; do
    key="$name/${part#*-of-}"
    parts[$key]=$((${parts[$key]:-0} + 1))
    if [ "${parts[$key]}" = "${part#*-of-}" ]; then echo "$name"; fi
  done <<< "$kept" | sort -V | tail -n 1
}

# Uploads every new checkpoint; its mark is written after all its files.
keep_checkpoints() {
  [ -n "$REMOTE" ] || return 0
  local each name failed=0
  for each in "$DIR"/*; do
    name="${each##*/}"
    if [[ ! -e $each || $name == *.tmp || -e $DIR/.kept/$name ]]; then continue; fi
    if store copyto "$each" "$REMOTE/$name" && echo | store rcat "$REMOTE/.complete/$name/$NODE-of-$NODES"; then
      touch "$DIR/.kept/$name"
      say "kept $name of node $NODE in $GPUPLAN_CHECKPOINTS"
    else
      say "cannot keep $name of node $NODE in $GPUPLAN_CHECKPOINTS; trying again"
      failed=1
    fi
  done
  return "$failed"
}

keep_while_running() {
  local last="" nap=""
  trap '' USR1
  trap 'last=yes; kill "$nap" 2> /dev/null' TERM
  while [ -z "$last" ]; do
    sleep "${GPUPLAN_KEEP_SECONDS:-60}" &
    nap="$!"
    wait "$nap"
    keep_checkpoints
  done
}

# torchrun kills its workers 30 s after a signal, so the workers get the signal instead.
# shellcheck disable=SC2329
ask_to_save() {
  [ -z "$stopping" ] || return
  stopping="$1"
  say "asking the run for a last checkpoint: $2"
  local workers=()
  if [ "${command##*/}" = torchrun ]; then read -r -a workers < "/proc/$child/task/$child/children"; fi
  kill -TERM "${workers[@]:-$child}"
  (
    trap '' USR1
    sleep "$SAVE"
    kill -TERM -- "-$child"
    sleep 30
    kill -KILL -- "-$child"
  ) 2> /dev/null &
  escalation="$!"
}

# shellcheck disable=SC2329
heed() {
  case "$1" in
    told) ask_to_save "$TOLD_TO_END" "this node was told to end" ;;
    limit) ask_to_save "$LIMIT_REACHED" "the run limit of $hours is near" ;;
  esac
}

# rclone logs in as the machine does: https://rclone.org/docs/#connection-strings, https://rclone.org/s3/,
# https://rclone.org/googlecloudstorage/, https://rclone.org/azureblob/
place="${GPUPLAN_CHECKPOINTS#*://}"
case "$GPUPLAN_CHECKPOINTS" in
  s3://*) REMOTE=":s3,provider=AWS,env_auth,no_check_bucket:$place" ;;
  gs://*) REMOTE=":gcs,env_auth,bucket_policy_only,no_check_bucket:$place" ;;
  abfs://*@*)
    account="${place#*@}"
    folder="${account#*.dfs.core.windows.net}"
    REMOTE=":azureblob,account=${account%%.*},env_auth,no_check_container:${place%%@*}$folder"
    ;;
  /mnt/*) DIR="$GPUPLAN_CHECKPOINTS" ;;
  *) fail "$NOT_CONFIGURED" "there is no place for checkpoints ($GPUPLAN_CHECKPOINTS): give the job data.checkpoints, or export again with --checkpoints s3://bucket/path" ;;
esac
export GPUPLAN_CHECKPOINT_DIR="$DIR"
if [ -n "$REMOTE" ]; then
  need_rclone || fail "$STORE_FAILED" "cannot get rclone: put it into the image"
  mkdir -p "$DIR/.kept"
elif [ -n "${GPUPLAN_MOUNT_IS_NEEDED:-}" ]; then
  [ -d "$DIR" ] || fail "$NOT_CONFIGURED" "$DIR is not there: mount it on every machine, by its image"
  case "$(stat --file-system --format=%T "$DIR")" in
    ext2/ext3 | xfs | btrfs | zfs | overlayfs | tmpfs | ramfs)
      fail "$NOT_CONFIGURED" "$DIR is on the machine's own disk, which goes with it: mount a file system that all machines share"
      ;;
  esac
else
  mkdir -p "$DIR" || fail "$NOT_CONFIGURED" "cannot make $DIR"
fi

started="$(read_note "started-$NODE")" || fail "$STORE_FAILED" "cannot read $GPUPLAN_CHECKPOINTS: let the machine in"
if [[ ! $started =~ ^[0-9]+$ ]]; then
  started="$(date +%s)"
  write_note "started-$NODE" "$started" || fail "$STORE_FAILED" "cannot write to $GPUPLAN_CHECKPOINTS: let the machine in"
fi
left=$((started + GPUPLAN_LIMIT_SECONDS - $(date +%s) - GRACE))
hours="$((GPUPLAN_LIMIT_SECONDS / 3600)) h"
[ "$left" -gt 0 ] || fail "$LIMIT_REACHED" "the run limit of $hours has passed. To go on from the newest checkpoint: $GPUPLAN_RESUME"

newest="$(newest_complete)" || fail "$STORE_FAILED" "cannot list the checkpoints in $GPUPLAN_CHECKPOINTS"
if [ -n "$newest" ]; then
  if [ -n "$REMOTE" ]; then
    store copyto "$REMOTE/$newest" "$DIR/$newest" || fail "$STORE_FAILED" "cannot fetch $newest from $GPUPLAN_CHECKPOINTS"
    touch "$DIR/.kept/$newest"
  fi
  export GPUPLAN_RESUME_FROM="$DIR/$newest"
  say "resuming from $newest"
else
  unset GPUPLAN_RESUME_FROM
  say "no complete checkpoint in $GPUPLAN_CHECKPOINTS: starting from the beginning"
fi

stopping="" escalation="" command="$1"
log="$(mktemp)"
exec 3> >(trap '' TERM INT USR1 && exec tee "$log")
tee="$!"
# Every job below has its own process group, so that it can be killed as a whole.
set -m
# A signal while the jobs below are being started waits until all of them can be ended.
early=""
trap 'early=told' TERM INT
trap 'early=limit' USR1
(trap '' USR1 && exec "$@") >&3 2>&1 3>&- &
child="$!"
(exec 3>&- && sleep "$left" && kill -USR1 "$$") &
timer="$!"
keep_while_running 3>&- &
keeper="$!"
trap 'heed told' TERM INT
trap 'heed limit' USR1
heed "$early"

# A signal ends `wait` before the run has ended.
while wait "$child"; kill -0 "$child" 2> /dev/null; do :; done
wait "$child"
status="$?"
trap '' TERM INT USR1
kill -TERM -- "-$timer" ${escalation:+"-$escalation"} 2> /dev/null
exec 3>&-
wait "$tee"
kill -TERM "$keeper" 2> /dev/null
wait "$keeper"

if ! keep_checkpoints; then
  [ "$status" -ne 0 ] || status="$STORE_FAILED"
  say "THE LAST CHECKPOINT IS NOT KEPT: $GPUPLAN_CHECKPOINTS did not take it"
fi
if [ -n "$stopping" ]; then
  status="$stopping"
  say "stopped before it was finished. To go on from the newest checkpoint: $GPUPLAN_RESUME"
fi
if [ -n "$REMOTE" ]; then store copyto "$log" "$REMOTE/.runs/$RUN/log-$NODE" || say "cannot keep the log"; fi
write_note "exit-$NODE" "$status" || say "cannot keep the exit status $status"
exit "$status"
