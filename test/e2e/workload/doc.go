// Package workload writes to a real MySQL or MariaDB as a shop with an outbox
// does, fast enough to be a load, and keeps a journal of what each transaction
// publishes if it commits.
//
// Each transaction first counts up the counter of each partition that its rows
// will land in. The row lock is held to the commit, so the counter is the place
// of the transaction in the commit order of that partition. It goes into the
// payloads and, in the same transaction, into the ledger, which settles what
// became of commits that were never answered.
package workload
