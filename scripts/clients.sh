#!/usr/bin/env bash
# Runs the openai clients for Python and Node against bin/ieg on a free port.
# The clients are installed once, pinned, into the user's cache.
. "$(dirname "$0")/fetch.sh"

need python3 pip npm node
py=$cache/clients/python-openai-$OPENAI_PY_VERSION
js=$cache/clients/node-openai-$OPENAI_JS_VERSION

install_python() {
	[[ -d $py ]] && return
	local dir pip
	pip=$(find_pip)
	dir=$(scratch client-python)
	say "fetching the openai client $OPENAI_PY_VERSION for Python with pip"
	# shellcheck disable=SC2086 # the command is meant to split
	$pip install --quiet --disable-pip-version-check --no-cache-dir --root-user-action=ignore --only-binary :all: \
		--target "$dir/out" --requirement "$root/bench/clients/requirements.txt" >"$dir/log" 2>&1 ||
		die "pip could not install it: $(last_line "$dir/log")"
	mkdir -p "$cache/clients"
	mv "$dir/out" "$py"
}

install_node() {
	[[ -d $js ]] && return
	local dir
	dir=$(scratch client-node)
	say "fetching the openai client $OPENAI_JS_VERSION for Node with npm"
	(cd "$dir" && mkdir out && npm install --prefix out --no-save --no-package-lock --no-audit --no-fund --loglevel error \
		"openai@$OPENAI_JS_VERSION" >log 2>&1) || die "npm could not install it: $(last_line "$dir/log")"
	mkdir -p "$cache/clients"
	mv "$dir/out" "$js"
}

locked clients install_python
locked clients install_node

dir=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$root/bin/ieg" up --model "$models/$SMOLLM2_FILE" --model "$models/$MINILM_FILE" \
	--listen "127.0.0.1:$port" --admin "$dir/ieg.sock" --data-dir "$dir/data" >"$dir/log" 2>&1 &
node=$!
stop() {
	kill -TERM "$node" 2>/dev/null && wait "$node" || true
	rm -rf "$dir"
}
trap stop EXIT

healthy() {
	python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/health", timeout=1)' "$IEG_BASE_URL" 2>/dev/null
}

export IEG_BASE_URL=http://127.0.0.1:$port
for ((i = 0; ; i++)); do
	healthy && break
	kill -0 "$node" 2>/dev/null || die "bin/ieg ended: $(tail -n 3 "$dir/log")"
	((i < 300)) || die "not ready after 60 s: $(tail -n 3 "$dir/log")"
	sleep 0.2
done

status=0
printf '== openai %s for Python\n' "$OPENAI_PY_VERSION"
PYTHONPATH=$py python3 "$root/bench/clients/client.py" || status=1
printf '== openai %s for Node\n' "$OPENAI_JS_VERSION"
NODE_PATH=$js/node_modules node "$root/bench/clients/client.mjs" || status=1
kill -0 "$node" 2>/dev/null || die "bin/ieg ended under the clients: $(tail -n 3 "$dir/log")"
exit "$status"
