// Package tiertest is for those who make a tier.Store and those who use one:
// the suite that each store must pass, a store in memory, and a wrapper that
// lets a store fail by a seed.
package tiertest
