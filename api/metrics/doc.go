// Package metrics serves what kernel/meter counts, in Prometheus' text and
// OpenMetrics formats, with the metrics of the Go runtime and the process.
//
// It owns the names: ieg_* are the project's own (labels model, engine, device
// and, where it matters, class), vllm:* are aliases with vLLM's stems, bounds
// and labels (model_name, engine), so that its dashboards and the routers that
// read them work unchanged. Units are in the names; ratios are 0 … 1; an engine
// is named by its number. It counts nothing itself.
//
// Tap is the observer that feeds a meter from the loop and hands copies to
// whoever scrapes: a scrape holds the loop up for the time of one copy only.
package metrics
