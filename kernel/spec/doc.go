// Package spec is the text form of the configuration blocks: Node Spec,
// Resource Spec, dag_constraints with termination_policy, preemption_config,
// state_transitions, kv_transfer_config, profiling_matrix,
// execution_path_registry and fallback_policy.
//
// It owns the keys, the quantities with suffixes (120T, 40GB, 2TB/s, 200ms,
// 45%; GB = 10⁹, GiB = 2³⁰), strict reading with line, column, path and a
// suggestion, printing that reads back to the same value, and the register of
// what is built: a key whose part is not is refused with "not yet". It does
// not open files and does not apply anything: it gives typed values to those
// who do.
//
// Fields (String, Int, Bytes, Group, …) bind keys to Go values; the same
// binding reads and prints. Other parts of a configuration file can be read
// along by binding their keys in the same way.
package spec
