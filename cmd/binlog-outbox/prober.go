package main

// newProber returns what validate --probe asks the servers with; nil for nothing.
func newProber() Prober { return nil }
