// Package judge checks what the end of a chaos run left behind, beyond the rows
// themselves (test/e2e/history): Kafka transactions against those of the source, the
// stored positions against both, and the nodes' own state. Each check is one promise
// by name, and says with examples where it is broken.
package judge
