package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// leaderless kills or stops the broker of one of the connector's partitions until
// that has no leader, and kills the node that leads: whoever takes over has to do
// with a transaction whose partition is out of reach.
func (s *Stage) leaderless(ctx context.Context, step plan.Step) (undo, string, error) {
	name, partition := topic, int32(step.Number%(partitions+1))
	if partition == partitions {
		name, partition = positions, 0
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the partition has a leader all the time"))
	defer cancel()
	id, err := s.leaderOf(ctx, name, partition, s.addrs())
	if err != nil {
		return nothing, "", err
	}
	var broker *servers.Kafka
	var others []string
	for _, k := range s.kafka.Brokers {
		if int32(k.NodeID()) == id {
			broker = k
		} else {
			others = append(others, k.Addr())
		}
	}
	on := fmt.Sprintf("%s partition %d", name, partition)
	if broker == nil {
		return nothing, on, nil // of an earlier fault it has none yet
	}
	gone, back := broker.Kill, broker.Restart
	if step.Number/(partitions+1)%2 == 1 {
		gone, back = broker.Pause, func(context.Context) error { return broker.Resume() }
	}
	if err := gone(); err != nil {
		return nothing, on, err
	}
	n := s.pick(ctx, step)
	end := func(ctx context.Context) error { return errors.Join(back(ctx), n.start()) }
	for id >= 0 {
		if !sleep(ctx, 20*time.Millisecond) {
			return end, on, errors.Join(context.Cause(ctx), end(context.WithoutCancel(ctx)))
		}
		if id, err = s.leaderOf(ctx, name, partition, others); err != nil {
			id = 0 // ask again
		}
	}
	return end, on + ", node " + n.name, n.kill()
}

// leaderOf asks brokers who leads a partition: -1 when they say that nobody does.
func (s *Stage) leaderOf(ctx context.Context, name string, partition int32, brokers []string) (int32, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RequestTimeoutOverhead(2*time.Second),
		kgo.RetryTimeout(5*time.Second))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &name
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, fmt.Errorf("asking who leads %s: %w", name, err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.Partition == partition {
				return p.Leader, nil
			}
		}
	}
	return 0, fmt.Errorf("%s has no partition %d", name, partition)
}

// quota bounds what all producers together may send to each broker, in bytes a
// second; nil takes the bound back.
func (s *Stage) quota(ctx context.Context, rate *float64) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addrs()...))
	if err != nil {
		return err
	}
	defer client.Close()
	entity := kmsg.NewAlterClientQuotasRequestEntryEntity()
	entity.Type = "client-id" // of no name: whoever has none of his own
	op := kmsg.NewAlterClientQuotasRequestEntryOp()
	op.Key, op.Remove = "producer_byte_rate", rate == nil
	if rate != nil {
		op.Value = *rate
	}
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	entry.Entity = append(entry.Entity, entity)
	entry.Ops = append(entry.Ops, op)
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries = append(req.Entries, entry)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("setting a quota: %w", err)
	}
	return kerr.ErrorForCode(resp.Entries[0].ErrorCode)
}
