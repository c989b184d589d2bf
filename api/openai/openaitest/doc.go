// Package openaitest is the front door's Node as a puppet: a byte tokeniser,
// models as data, and requests that a test plays by hand.
package openaitest
