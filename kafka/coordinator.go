package kafka

import (
	"context"
	"time"

	"github.com/IBM/sarama"
)

const (
	// coordinatorPatience is how long a cluster may take to come up with a transaction
	// coordinator before sarama is left to find out why there is none.
	coordinatorPatience = 10 * time.Second
	// findCoordinatorTyped is the version of FindCoordinator that all brokers speak
	// and that knows of transactions.
	findCoordinatorTyped = 1
)

// awaitCoordinator asks for the coordinator of a transactional id until there is one.
// The first question of a cluster's life makes the brokers create the topic of their
// transactions, which takes them a moment; sarama would look after seconds only. What
// else may be wrong sarama will say.
func awaitCoordinator(ctx context.Context, b *sarama.Broker, id string) {
	until := time.Now().Add(coordinatorPatience)
	for wait := 5 * time.Millisecond; time.Now().Before(until); wait = min(2*wait, 100*time.Millisecond) {
		found, err := b.FindCoordinator(&sarama.FindCoordinatorRequest{
			Version: findCoordinatorTyped, CoordinatorKey: id, CoordinatorType: sarama.CoordinatorTransaction,
		})
		if err != nil || found.Err != sarama.ErrConsumerCoordinatorNotAvailable {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}
