#!/usr/bin/env bash
# Sees to what pip can't install, by the names venv, rabbitmq, postgresql, pgbouncer and prometheus: as root on Debian or
# Ubuntu it installs what is missing, anywhere else it says in a sentence what to install.
set -euo pipefail

there() {
  case $1 in
    venv) python3 -c 'import ensurepip' 2>/dev/null ;;
    rabbitmq) [[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]] || command -v rabbitmq-server ;;
    postgresql) compgen -G '/usr/lib/postgresql/*/bin/initdb' || command -v initdb ;;
    pgbouncer) [[ -x /usr/sbin/pgbouncer ]] || command -v pgbouncer ;;
    prometheus) command -v promtool ;;
  esac >/dev/null
}

package() {
  case $1 in
    venv) echo python3-venv ;;
    rabbitmq) echo rabbitmq-server ;;
    postgresql) echo postgresql ;;
    pgbouncer) echo pgbouncer ;;
    prometheus) echo prometheus ;;
  esac
}

missing=()
for name in "$@"; do
  there "$name" || missing+=("$(package "$name")")
done
((${#missing[@]})) || exit 0

if [[ $(id -u) != 0 || ! -e /etc/debian_version ]]; then
  echo "Please install ${missing[*]} (those are Debian's names), or run this as root on Debian or Ubuntu." >&2
  exit 1
fi

# Debian starts what it installs, unless this file says no. The tests start private servers of their own.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
echo "  installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
said=$(apt-get update -qq 2>&1 && apt-get install -qq --yes --no-install-recommends "${missing[@]}" 2>&1) || {
  echo "$said" >&2
  exit 1
}
