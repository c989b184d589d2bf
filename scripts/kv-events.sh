#!/usr/bin/env bash
# Runs a consumer of vLLM's KV events, on libzmq and msgspec, against bin/ieg
# with a synthetic model. The libraries are installed once, pinned, into the
# user's cache.
. "$(dirname "$0")/fetch.sh"

need python3 pip
wanted=$root/bench/clients/kv_events_requirements.txt
py=$cache/clients/python-kv-events-$(digest "$wanted" | cut -c1-12)

install_python() {
	[[ -d $py ]] && return
	local dir pip
	pip=$(find_pip)
	dir=$(scratch client-kv-events)
	say "fetching pyzmq and msgspec with pip"
	# shellcheck disable=SC2086 # the command is meant to split
	$pip install --quiet --disable-pip-version-check --no-cache-dir --root-user-action=ignore --only-binary :all: \
		--target "$dir/out" --requirement "$wanted" >"$dir/log" 2>&1 ||
		die "pip could not install them: $(last_line "$dir/log")"
	mkdir -p "$cache/clients"
	mv "$dir/out" "$py"
}

locked clients install_python

# run FORM: one node, one consumer.
run() (
	dir=$(mktemp -d)
	read -r port events replay < <(python3 -c '
import socket
s = [socket.socket() for _ in range(3)]
[x.bind(("127.0.0.1", 0)) for x in s]
print(*[x.getsockname()[1] for x in s])')
	"$root/bin/ieg" up --model m=synth:stop=300 --ctx 2048 --kv-host 32MiB --kv-nvme 64MiB \
		--kv-events "tcp://127.0.0.1:$events?replay=$replay&events=$1" \
		--listen "127.0.0.1:$port" --admin "$dir/ieg.sock" --data-dir "$dir/data" >"$dir/log" 2>&1 &
	node=$!
	stop() {
		kill -TERM "$node" 2>/dev/null && wait "$node" || true
		rm -rf "$dir"
	}
	trap stop EXIT
	export IEG_BASE_URL=http://127.0.0.1:$port IEG_KV_EVENTS=tcp://127.0.0.1:$events IEG_KV_REPLAY=tcp://127.0.0.1:$replay IEG_KV_FORM=$1
	for ((i = 0; ; i++)); do
		python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/health", timeout=1)' "$IEG_BASE_URL" 2>/dev/null && break
		kill -0 "$node" 2>/dev/null || die "bin/ieg ended: $(tail -n 3 "$dir/log")"
		((i < 150)) || die "not ready after 30 s: $(tail -n 3 "$dir/log")"
		sleep 0.2
	done
	printf '== KV events as %s\n' "$1"
	PYTHONPATH=$py python3 "$root/bench/clients/kv_events.py"
)

status=0
run maps || status=1
run arrays || status=1
exit "$status"
