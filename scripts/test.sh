#!/usr/bin/env bash
# The gate: format, vet, the race detector over what runs concurrently, then
# every test with the real engine and models. Arguments go to both go tests.
. "$(dirname "$0")/fetch.sh"
cd "$root"

"$root/scripts/need.sh" test
"$root/scripts/engine.sh" >/dev/null
"$root/scripts/models.sh" >/dev/null

unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l)
[[ -z $unformatted ]] || die "not formatted; run gofmt -w on: $unformatted"

say "go vet"
go vet ./...

# The detector needs a C compiler. Left out: the real engine (its threads are
# C's, and a tenth of the speed proves nothing) and code without goroutines.
if command -v gcc >/dev/null || command -v clang >/dev/null; then
	say "go test -race"
	mapfile -t racy < <(go list ./... | grep -vE '^ieg$|/devices/engine/llama$|/cgo/|/scripts/|/kernel/(graph|cost|place|sched|meter|spec)$|/memory/kv$|/api/(parse|grammar|schema|template)$|/bench(/report)?$')
	CGO_ENABLED=1 go test -race -short -timeout 5m "$@" "${racy[@]}"
else
	say "no C compiler: the tests with the race detector are left out (Debian package gcc)"
fi

say "go test"
CGO_ENABLED=0 go test -timeout 8m "$@" ./...
