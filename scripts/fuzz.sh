#!/usr/bin/env bash
# fuzz.sh TIME runs every fuzz target that it finds for that long.
# Minimising is bounded: left alone it takes a minute and ends in a time-out that
# looks like a failure.
. "$(dirname "$0")/fetch.sh"
cd "$root"

span=${1:-20s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
found=0
while IFS=: read -r file line; do
	name=${line#func }
	name=${name%%(*}
	say "$(dirname "$file") $name"
	if ! go test -run '^$' -fuzz "^$name\$" -fuzztime "$span" -fuzzminimizetime 100x "./$(dirname "$file")" | tee "$log"; then
		# Go reports the end of the time as a failure when it meets an input
		# that is just being tried; a real one names its input.
		grep -q 'context deadline exceeded' "$log" && ! grep -qE 'Failing input|panic|to re-run' "$log" || exit 1
		say "(its time ended within an input)"
	fi
	found=$((found + 1))
done < <(git grep --untracked -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go')
((found > 0)) || die "no fuzz target found"
say "$found fuzz targets, $span each: no failure"
