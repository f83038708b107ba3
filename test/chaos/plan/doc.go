// Package plan makes the plan of a chaos run from its seed: which faults begin when,
// against what, and for how long. The same seed and options give the same plan; what
// the machine makes of it differs from run to run.
package plan
