// Command gen writes the vector code of package codec, and the Go file that
// declares it, into the current folder. It is run by go generate.
package main
