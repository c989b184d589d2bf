// Package config is the node's effective configuration: its defaults, the
// YAML file, environment and flags that override them in this order, the
// source of each value, and its text form.
//
// It owns names, units and checks of the settings. It does not open, lock or
// create anything that they name: the composition root does. Reading is
// strict: an unknown key, a wrong type or a value out of range is refused with
// file, line, column and field, and all such errors are told at once.
package config
