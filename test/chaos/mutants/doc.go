// Command mutants breaks the product on purpose, one rule at a time, and makes sure
// that the tests notice. A mutant is a few edits of a source file, laid over the
// tree for one run (go test -overlay): nothing of it is in the product. An edit whose
// place in the source is gone is an error, so that no mutant dies unseen.
//
//	go run ./test/chaos/mutants              all of them
//	go run ./test/chaos/mutants -only taint  those with that word in their name
//	go run ./test/chaos/mutants -list        what there is, and how each is caught
package main
