#!/bin/bash
# Stands in for the program whose name it has, in a test that runs the lines of a page. It fails for unknown options,
# services, containers and objects. In $STATE, a folder stands in for each volume, and an empty file for everything else
# that exists. Commands of plant-store really run.
set -euo pipefail

fail() { echo "${0##*/}: $*" >&2; exit 1; }
need() { [[ -e $STATE/$1 ]] || fail "$1 does not exist"; }
need_absent() { [[ ! -e $STATE/$1 ]] || fail "$1 exists"; }
create_store() { [[ -e ${DATABASE_URL#*:} ]] || plant-store import <<<'{"id":1,"name":"Fern"}'; }

# Runs a command with the folder of a volume instead of /data.
in_volume() {
  local folder=$STATE/volume-$1
  shift
  export DATABASE_URL=sqlite:$folder/plants.db
  mkdir -p "$folder" && create_store && "${@//\/data\//$folder/}"
}

docker() {
  case "$*" in
    compose\ *) compose "${@:2}" ;;
    'build -t plant-store:'*' .') ;;
    'run --rm -v plants:/data plant-store:'*) in_volume plants plant-store "${@:6}" ;;
    'run -d --name plants --restart unless-stopped --read-only -p '*) need_absent "$4" && touch "$STATE/$4" ;;
    exec\ *) need "$2" && in_volume "$2" "${@:3}" ;;
    stop\ * | rm\ *) need "$2" && { [[ $1 == stop ]] || rm "$STATE/$2"; } ;;
    *) fail "unknown arguments: $*" ;;
  esac
}

compose() {
  local file=compose.yaml project command variable
  if [[ $1 == -f ]]; then file=$2 && shift 2; fi
  for variable in $(grep -o '\${[A-Z_]*' "$file" | tr -d '${'); do
    grep -q "^$variable=." "$(dirname "$file")/.env" || fail "$variable is not set"
  done
  project=$(sed -n 's/^name: //p' "$file") command=$1 && shift
  while [[ ${1-} == -* ]]; do
    case "$command $1" in
      up\ -d | up\ --wait | up\ --build | up\ --no-deps | up\ --force-recreate | exec\ -T | run\ -T | run\ --rm) shift ;;
      run\ --entrypoint | logs\ --tail) shift 2 ;;
      *) fail "unknown option $1" ;;
    esac
  done
  [[ $# == 0 ]] || grep -q "^  ${1%%:*}:" "$file" || fail "the service ${1%%:*} does not exist"
  case $command in
    up | start) touch "$STATE/running-$project" ;;
    stop) rm -f "$STATE/running-$project" ;;
    exec) need "running-$project" && in_volume "$project" "${@:2}" ;;
    run) need_absent "running-$project" && in_volume "$project" sh "${@:2}" ;;
    cp) in_volume "$project" cp "${@#*:}" ;;
    ps | logs | build) ;;
    *) fail "unknown command $command" ;;
  esac
}

kubectl() {
  local name='' pod=pod-plant-store-0
  if [[ $1 == -n ]]; then need "namespace-$2" && shift 2; fi
  case "$*" in
    'create namespace '*' --dry-run=client -o yaml') printf 'kind: Namespace\n  name: %s\n' "$3" ;;
    'create secret generic '*' --from-file=tokens.txt --dry-run=client -o yaml') printf 'kind: Secret\n  name: %s\n' "$4" ;;
    'apply -f '*)
      for name in $(awk '/^kind:/ { kind = tolower($2) } /^  name:/ { print kind "-" $2 }' "${3/#-//dev/stdin}"); do
        touch "$STATE/$name" "$STATE/${name/#statefulset-plant-store/$pod}"
      done
      need "${name:-objects}" ;;
    'label --overwrite namespace '*=*) need "namespace-$4" ;;
    'logs -l app=plant-store --tail '*) ;;
    'rollout status '*/*) need "${3/\//-}" ;;
    'exec '*' -- '*) need "$([[ $2 == */* ]] && echo "${2/\//-}" || echo "pod-$2")" && in_volume data "${@:4}" ;;
    'cp '*:*' '* | 'cp '*' '*:*) in_volume data "${@#*:}" ;;
    'scale '*/*' --replicas='[01]) need "${2/\//-}" && rm -f "$STATE/$pod" && [[ $3 == *0 ]] || touch "$STATE/$pod" ;;
    'wait --for=delete pod/'*' --timeout='*) need_absent "${3/\//-}" ;;
    # A volume can be used by one pod.
    'wait --for=condition=Ready pod/'*' --timeout='*) need "${3/\//-}" && need_absent "$pod" ;;
    'delete pod '*) need "pod-$3" && rm "$STATE/pod-$3" ;;
    *) fail "unknown arguments: $*" ;;
  esac
}

systemctl() {
  local unit
  [[ " enable disable daemon-reload status start stop restart reload " == *" $1 "* ]] || fail "unknown command $1"
  for unit in "${@:2}"; do
    # The file of a template has no instance in its name.
    [[ $unit == --now || $unit == nginx || -e $UNITS/${unit/@*./@.} || -e $UNITS/$unit.service ]] || fail "$unit does not exist"
  done
  create_store
}

journalctl() { [[ $* == '-u '*' -n '*' -o cat' ]] && systemctl status "$2"; }
sudo() { "$@"; }
nginx() { [[ $* == -t ]]; }
npm() { [[ $* =~ ^(ci|run build|prune --omit=dev)$ ]]; }
pg_dump() { echo dump; }
pg_restore() { grep dump; }
plant-store() { [[ $* == 'health --ready' ]] || "$NODE" "$CLI" "$@"; }

"${0##*/}" "$@"
