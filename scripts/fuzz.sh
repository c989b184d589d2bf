#!/usr/bin/env bash
# fuzz.sh TIME runs every fuzz target that it finds for that long.
. "$(dirname "$0")/fetch.sh"
cd "$root"

span=${1:-20s}
found=0
while IFS=: read -r file line; do
	name=${line#func }
	name=${name%%(*}
	say "$(dirname "$file") $name"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$span" "./$(dirname "$file")"
	found=$((found + 1))
done < <(git grep --untracked -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go')
((found > 0)) || die "no fuzz target found"
say "$found fuzz targets, $span each: no failure"
